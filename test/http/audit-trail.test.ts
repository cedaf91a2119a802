// The trail of a subject, from tokens of its issuer to the cost of its requests: written by a running server, checked with the verifier key
// alone, and refused after any change. Then the same with another subject erased.
import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { drawTrail } from '../../scripts/audit-trail.ts'
import type { TrailItem } from '../../src/admin/audit-trail.ts'
import { checkRowProof } from '../../src/audit-log/row-proof.ts'
import { checkTrailFolder, writeTrail } from '../../src/audit-log/trail-folder.ts'
import { parseRequest, type TrailHead } from '../../src/audit-log/trail-format.ts'
import { createSignerKey, parseVerifierKey, type VerifierKey } from '../../src/audit-log/transparency/note.ts'
import { audience, type Federation, startFederation, temporaryFolder } from '../support/latchkey.ts'

const dayMilliseconds = 24 * 60 * 60 * 1_000

let federation: Federation
let temporary: ReturnType<typeof temporaryFolder>
let key: VerifierKey
let shift = 0
const requestIds: string[] = []

async function use(subjectToken: string, policy: string, requests: number): Promise<void> {
  const response = await federation.exchange(subjectToken, { federation_policy_id: policy })
  const { access_token: token } = (await response.json()) as { access_token: string }
  for (let count = 0; count < requests; count += 1) {
    const answer = await fetch(`${federation.server.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
    })
    expect(answer.status).toBe(200)
    requestIds.push(answer.headers.get('x-request-id') ?? '')
    await answer.text()
  }
}

async function write(name: string, subject = 'workload-1'): Promise<string> {
  const folder = join(temporary.path, name)
  const input = { subject, issuer: 'idp' }
  const { head, data } = await federation.admin<{ head: TrailHead; data: TrailItem[] }>('audit.trail', input)
  const textsOf = (kind: string) => data.filter((item) => item.kind === kind).map(({ text }) => text)
  const proofs = { exchanges: textsOf('exchange'), changes: textsOf('change'), days: textsOf('usage_day') }
  const requests = textsOf('request').map(parseRequest)
  await writeTrail(folder, { head, ...proofs, erasures: textsOf('erasure'), requests }, [key])
  return folder
}

beforeAll(async () => {
  temporary = temporaryFolder()
  federation = await startFederation({ dependencies: { now: () => Date.now() + shift } })
  const { admin, mint, policy } = federation
  await admin('prices.set', { prices: [{ model: 'echo', prompt: 1, completion: 2 }] })
  const other = await admin('policies.create', {
    ...{ name: 'other', issuer: 'idp', key: 'target', audience, subject: 'workload-2' },
  })
  await admin('policies.update', { policy: policy.id, subject: 'workload-1' })
  await use(await mint(), policy.id, 2)
  await federation.exchange(await mint({ aud: 'another audience' }))
  await use(await mint({ sub: 'workload-2' }), other.id, 1)
  await use(await mint(), policy.id, 1)
  await admin('audit.checkpoint')
  const { keys } = await admin<{ keys: { verifier_key: string }[] }>('audit.log')
  key = parseVerifierKey(keys[0]?.verifier_key ?? '') as VerifierKey
})
afterAll(async () => {
  await federation.stop()
  temporary.remove()
})

test('requests of a day that has not ended are in the trail, and nothing proves them yet', async () => {
  const found = await checkTrailFolder(await write('open'), [key])
  expect(found).toMatchObject({
    problems: [],
    open: { requests: 3 },
    proven: { requests: 0, tokens: 0, nanodollars: 0 },
    keyDays: [],
  })
})

test('a change that does not exist is named by its number', async () => {
  const refused = federation.admin('audit.prove', { change_id: 99_999 })
  await expect(refused).rejects.toThrow('The audit log has no change 99999')
})

test('what nothing proves yet has no check mark, and is no part of the sum', async () => {
  const { head, ...check } = await checkTrailFolder(await write('open too'), [key])
  const lines = drawTrail(head, check).split('\n')
  expect(lines[1]).toContain('3 exchanges, 0 requests, 0 tokens, 0 USD')
  const [line = ''] = lines.filter((each) => each.includes('Not proven: 3 requests'))
  expect(line).not.toContain('✓')
  expect(check.open.nanodollars).toBeGreaterThan(0)
  expect(readFileSync(join(temporary.path, 'open too', 'index.html'), 'utf8')).toContain('<dt>Not proven yet</dt>')
})

test('a trail of nobody says that nothing is there', async () => {
  const folder = await write('nobody', 'workload-9')
  const { head, ...check } = await checkTrailFolder(folder, [key])
  expect(drawTrail(head, check)).toContain('Nothing of this subject is in the trail')
})

test('a request of today has no proof, and the refusal has the time from which it has one', async () => {
  const refused = federation.admin('audit.prove', { request_id: requestIds[0] })
  const tomorrow = new Date(Date.now() - 15 * 60_000 + dayMilliseconds).toISOString().slice(0, 10)
  await expect(refused).rejects.toThrow(`after ${tomorrow}T00:15Z`)
})

test('to another organization, a request of today is as absent as any that nobody made', async () => {
  const [id] = requestIds
  const other = await federation.admin<{ id: string }>('organizations.create', { name: 'globex', plan: 'enterprise' })
  const refused = federation.admin('audit.prove', { request_id: id, organization: other.id })
  await expect(refused).rejects.toThrow(`There is no exchange or inference request with the request id ${id}`)
})

describe('after the day', () => {
  let folder: string
  beforeAll(async () => {
    // Tomorrow at noon: until the day after, a request that was committed late can still be without a record.
    shift = dayMilliseconds - (Date.now() % dayMilliseconds) + dayMilliseconds / 2
    folder = await write('closed')
  })

  test('all of the subject and nobody else is there, with its cost, and proven', async () => {
    const found = await checkTrailFolder(folder, [key])
    expect(found).toMatchObject({ problems: [], open: { requests: 0 }, proven: { requests: 3 } })
    expect(found.exchanges.map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ['issued', null],
      ['refused', 'audience_mismatch'],
      ['issued', null],
    ])
    expect(found.requests.every(({ isOfExchange, subject }) => isOfExchange && subject === 'workload-1')).toBe(true)
    expect(found.proven.nanodollars).toBe(
      found.requests.reduce((sum, { cost_nanodollars: cost }) => sum + (cost ?? 0), 0),
    )
    expect(found.proven.nanodollars).toBeGreaterThan(0)
    expect(found.keyDays.reduce((sum, { shown }) => sum + shown, 0)).toBe(3)
    expect(found.keyDays.reduce((sum, { all }) => sum + all, 0)).toBe(4)
    expect([...found.names.values()]).toEqual(expect.arrayContaining(['idp', 'policy', 'target']))
    const everything = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'))
    expect(everything.join('\n')).not.toContain('workload-2')
  })

  test('on the page, the access token of each request leads to the exchange that issued it', () => {
    const page = readFileSync(join(folder, 'index.html'), 'utf8')
    const [links, targets] = [page.matchAll(/href="#([^"]+)"/g), page.matchAll(/id="([^"]+)"/g)]
    const tokens = [...targets].map(([, id]) => id)
    expect([...links].map(([, id]) => tokens.indexOf(id))).toEqual([0, 0, 1])
  })

  test('one request has a proof that the verifier key alone checks, over HTTP', async () => {
    const auditor = await federation.admin<{ key: string }>('keys.create', { name: 'auditor', role: 'auditor' })
    const path = `/workload-identity/audit/proof?request_id=${requestIds[1]}`
    const headers = { authorization: `Bearer ${auditor.key}` }
    const response = await fetch(`${federation.server.baseUrl}${path}`, { headers })
    const { data } = (await response.json()) as { data: { proof: string } }
    const found = checkRowProof(data.proof, key)
    expect(found).toMatchObject({ problem: undefined, kind: 'usage_day', request: { index: 1, rows: 4 } })
    const row = found.problem === undefined ? JSON.parse(found.request?.row ?? '') : {}
    expect(row).toMatchObject({ request_id: requestIds[1], subject: 'workload-1' })
  })

  const files = (within: string, kind: string) =>
    readdirSync(join(within, kind)).map((name) => join(within, kind, name))
  const edit = (path: string, from: string | RegExp, to: string) => {
    const text = readFileSync(path, 'utf8')
    const edited = text.replace(from, to)
    if (edited === text) throw new Error(`${path} has no ${from}`)
    writeFileSync(path, edited)
  }
  const extra = (path: string, from: string, to: string) => {
    const text = readFileSync(path, 'utf8')
    const [line = ''] = text.match(/^extra .*$/m) ?? []
    const before = Buffer.from(line.slice(6), 'base64').toString()
    const changed = before.replace(from, to)
    if (changed === before) throw new Error(`${path} has no ${from}`)
    writeFileSync(path, text.replace(line, `extra ${Buffer.from(changed).toString('base64')}`))
  }
  const openDay = (within: string) => edit(join(within, 'requests.ndjson'), /"day":"[^"]*"/, '"day":null')
  const rowOf = (path: string) => {
    const found = checkRowProof(readFileSync(path, 'utf8'), key)
    return found.problem === undefined ? (JSON.parse(found.row) as Record<string, string>) : {}
  }
  const changeOf = (within: string, operation: string) =>
    files(within, 'changes').find((path) => rowOf(path).operation === operation) ?? ''
  const rmPolicy = (within: string) => {
    for (const path of files(within, 'changes')) if (rowOf(path).kind === 'policy') rmSync(path)
  }
  test.each<[string, (within: string) => void, string]>([
    [
      'an exchange',
      (within) => extra(files(within, 'exchanges')[0] ?? '', 'workload-1', 'workload-3'),
      'its row is not the one',
    ],
    [
      'an exchange less',
      (within) => rmSync(files(within, 'exchanges')[0] ?? ''),
      'index.html does not show what exchanges/',
    ],
    [
      'an exchange twice',
      (within) => cpSync(files(within, 'exchanges')[0] ?? '', join(within, 'exchanges/again.tlog-proof')),
      'is there twice',
    ],
    [
      'the totals of the day',
      (within) => extra(files(within, 'days')[0] ?? '', 'requests', 'Requests'),
      'its row is not the one',
    ],
    ['no totals of the day', (within) => rmSync(join(within, 'days'), { recursive: true }), 'brings the totals'],
    [
      'the cost of a request',
      (within) => edit(join(within, 'requests.ndjson'), /cost_nanodollars\\":\d+/, 'cost_nanodollars\\":1'),
      'the ledger of',
    ],
    [
      'a request less',
      (within) => edit(join(within, 'requests.ndjson'), /^.*\n/, ''),
      'index.html does not show what requests.ndjson',
    ],
    ['a request twice', (within) => edit(join(within, 'requests.ndjson'), /^(.*\n)/, '$1$1'), 'is there twice'],
    ['the page', (within) => edit(join(within, 'index.html'), 'issued', 'refused'), 'index.html does not show'],
    ['the subject', (within) => edit(join(within, 'trail.json'), 'workload-1', 'workload-3'), 'is not of the subject'],
    [
      'the issuer',
      (within) => edit(join(within, 'trail.json'), /"http:[^"]*"/, '"https://idp.example.com"'),
      'No change in the log',
    ],
    [
      'the issuer by its id',
      (within) => edit(join(within, 'trail.json'), /"issuer_id": "[^"]*"/, '"issuer_id": "other"'),
      'it is not of the subject in trail.json',
    ],
    [
      'a proof under an older checkpoint',
      (within) => {
        const [path = ''] = files(within, 'exchanges').toSorted()
        cpSync(join(temporary.path, 'open', 'exchanges', basename(path)), path)
      },
      'its checkpoint is not that of the others',
    ],
    ['no changes', (within) => rmSync(join(within, 'changes'), { recursive: true }), 'No change in the log'],
    [
      'the log',
      (within) => edit(join(within, 'trail.json'), 'latchkey/', 'latchkey/0'),
      'trail.json: it is of a different log',
    ],
    [
      'a proof of another kind',
      (within) => cpSync(files(within, 'changes')[0] ?? '', join(within, 'exchanges/change.tlog-proof')),
      'exchanges/change.tlog-proof: it is of an entry of kind change',
    ],
    [
      'the time',
      (within) => edit(join(within, 'trail.json'), /"made_at": "2/, '"made_at": "1'),
      'what trail.json says',
    ],
    ['a request that is said to be of an open day', (within) => openDay(within), 'but the log has the totals'],
    [
      'a request that is no row',
      (within) => edit(join(within, 'requests.ndjson'), /at\\":\d/, 'at\\":-1'),
      'has no row',
    ],
    [
      'the names of two proofs',
      (within) => {
        const [one = '', other = ''] = files(within, 'exchanges').toSorted()
        renameSync(one, `${one}.next`)
        renameSync(other, one)
        renameSync(`${one}.next`, other)
      },
      'it has the content of exchanges/',
    ],
    [
      'a change less',
      (within) => rmSync(changeOf(within, 'policies.create')),
      'the change of this policy before it is missing',
    ],
    ['all changes of a policy', (within) => rmPolicy(within), 'no change says what'],
    ['a missing file', (within) => rmSync(join(within, 'index.html')), 'index.html: it is missing'],
  ])('%s that was changed is found', async (_, damage, problem) => {
    const copy = join(temporary.path, 'copy')
    rmSync(copy, { recursive: true, force: true })
    cpSync(folder, copy, { recursive: true })
    damage(copy)
    const { problems } = await checkTrailFolder(copy, [key]).catch((error: Error) => ({ problems: [error.message] }))
    expect(problems.join('\n')).toContain(problem)
    expect(problems.join('\n')).not.toMatch(/ENOENT|other_row/)
  })

  test('a key of another log is one problem, and so is a witness that has not signed', async () => {
    const other = createSignerKey(key.name, 'log', Buffer.alloc(32, 3))
    expect((await checkTrailFolder(folder, [other])).problems).toEqual([expect.stringContaining('has signed none')])
    const witness = createSignerKey('office', 'witness', Buffer.alloc(32, 4))
    const { problems } = await checkTrailFolder(folder, [key], [witness])
    expect(problems).toEqual([expect.stringContaining('no witness of --witness has signed')])
  })

  test('the page shows the changes in words, and the prices', () => {
    const page = readFileSync(join(folder, 'index.html'), 'utf8')
    expect(page).toContain('for the audience')
    expect(page).toContain('with the subject workload-1')
    expect(page).toContain('price echo')
    expect(page).not.toContain('workload-2')
  })

  test('a request of an older day is refused without a record, though its proofs do not show that the day was closed', async () => {
    shift += dayMilliseconds
    const later = await write('later')
    openDay(later)
    rmSync(join(later, 'days'), { recursive: true })
    const { problems } = await checkTrailFolder(later, [key])
    expect(problems.join('\n')).toContain('line 1: it says that its day is open')
  })

  test('a trail is not written over another one', async () => {
    await expect(write('closed')).rejects.toThrow('not empty')
  })

  test('it is proven after others of its day were erased, and so are trails from before', async () => {
    // What an alert that is not saved yet says would be saved after the erasure.
    const saved = spyOn(federation.server.context.alerts, 'settle')
    const erased = await federation.admin('audit.erase', { subject: 'workload-2', issuer: 'idp', because: 'request 7' })
    expect(erased).toMatchObject({ exchanges: 1, usage: 1 })
    expect(saved).toHaveBeenCalledTimes(1)
    saved.mockRestore()
    const after = await write('after erasure')
    expect(await checkTrailFolder(after, [key])).toMatchObject({ problems: [], proven: { requests: 3 } })
    expect(readdirSync(join(after, 'erasures')).length).toBe(1)
    expect(await checkTrailFolder(folder, [key])).toMatchObject({ problems: [], proven: { requests: 3 } })
    expect(await federation.admin('audit.verify')).toMatchObject({ ok: true, problems: [], erased: 1 })
    await expect(federation.admin('audit.prove', { request_id: requestIds[1] })).rejects.toThrow('were erased')
  })

  test('a reason for an erasure that names the subject is refused', async () => {
    const input = { subject: 'workload-1', issuer: 'idp', because: 'workload-1 asked for it' }
    await expect(federation.admin('audit.erase', input)).rejects.toThrow('names the subject')
  })
})
