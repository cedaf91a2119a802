// `latchkey archive` and the reports beside it, as an operator and a management key see them.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { loadSpending } from '../../src/nodes/load-spending.ts'
import { readArchives } from '../support/archives.ts'
import { onFile } from '../support/file-only.ts'
import { type Federation, type Row, runCommand, startFederation } from '../support/latchkey.ts'
import { auditRow, organizationRows, usageRow } from '../support/rows.ts'
import { settingsIn } from '../support/server-kind.ts'

/** The id of the old requests, and its time. */
const oldRequest = '01900000-0000-7000-8000-000000000000'
const oldAt = 0x019000000000
const oldTime = new Date(oldAt).toISOString()
const before = new Date(oldAt + 60_000).toISOString()

let latchkey: Federation
let folder: string
let key: Row & { key: string }
beforeEach(async () => {
  latchkey = await startFederation()
  folder = join(latchkey.folder, 'archive')
  mkdirSync(folder)
  key = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'spender', limit: 1 })
  const { writer, registry } = latchkey.server.context
  const { organizationId = '', workspaceId = '' } = registry.keys.get(key.id) ?? {}
  const named = { organizationId, workspaceId, keyId: key.id, costNanodollars: 250_000_000 }
  for (const at of [oldAt, oldAt + 1_000, Date.now()]) {
    await writer.appendUsage({ ...usageRow(oldRequest, organizationRows('none')), ...named, at })
    await writer.appendAudit({ ...auditRow(oldRequest), organizationId, at })
  }
})
afterEach(() => latchkey.stop())

const env = () => settingsIn(latchkey.folder)
const command = (...args: string[]) => runCommand(args, { cwd: latchkey.folder, env: env() })
const archive = (input: object = {}) => latchkey.admin<{ data: Row[] }>('archive.run', { before, to: folder, ...input })
const archived = (kind: string) => [
  {
    file: expect.stringMatching(new RegExp(`^${kind}-2024-06-10-2024-06-10-[0-9a-f]{8}\\.ndjson\\.gz$`)),
    from: oldTime,
    to: new Date(oldAt + 1_000).toISOString(),
  },
]

test('the command archives, lists and verifies, as text and as JSON', async () => {
  const run = await command('archive', '--before', before, '--to', folder, '--json')
  expect(run).toMatchObject({ code: 0, stderr: '' })
  const { data } = JSON.parse(run.stdout) as { data: Row[] }
  expect(data).toMatchObject([
    { kind: 'exchanges', state: 'finished', rows: 2, from: oldTime, folder },
    { kind: 'usage', state: 'finished', rows: 2, from: oldTime, folder },
  ])
  expect(readArchives(folder).map(({ rows }) => rows.length)).toEqual([2, 2])
  expect(await command('archive', '--before', before, '--to', folder)).toMatchObject({
    code: 0,
    stdout: 'No rows are that old\n',
  })
  const listed = await command('archive', 'list', '--records', 'usage')
  expect(listed.stdout).toMatch(/^KIND +STATE +FROM[^\n]*\nusage +finished +2024-06-10/)
  expect(await command('archive', 'verify')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\nok +2 +\w+-2024-06-10-.*\.ndjson\.gz +\//),
  })
  const [, file = ''] = readdirSync(folder).filter((name) => name.endsWith('.gz'))
  rmSync(join(folder, file))
  const { code, stdout } = await command('archive', 'verify')
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining(`${file}" is missing or damaged`) })
})

test('archives in a folder that is out of reach are reported as missing, and not as an internal error', async () => {
  const loop = join(latchkey.folder, 'loop')
  symlinkSync(loop, loop)
  expect((await command('archive', '--before', before, '--to', folder)).code).toBe(0)
  const { code, stdout, stderr } = await command('archive', 'verify', '--from', loop)
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
  expect(stdout).toContain('is missing or damaged: ELOOP')
})

test('an archive of another database in the folder is named', async () => {
  await archive()
  const { writer } = latchkey.server.context
  await writer.appendUsage({ ...usageRow(oldRequest, organizationRows('none')), at: oldAt, ...(await someKey()) })
  await latchkey.admin('archive.run', { before: new Date().toISOString(), to: folder, kind: 'usage' })
  const { client } = latchkey.server.context.database
  await client.execute('drop trigger archives_keeps_rows')
  await client.execute('delete from archives where id = (select max(id) from archives)')
  const verified = await latchkey.admin<{ ok: boolean; unknown_files: string[] }>('archive.verify')
  expect(verified).toMatchObject({ ok: true, unknown_files: [expect.stringContaining(`${folder}/usage-`)] })
})

async function someKey() {
  const { organizationId = '', workspaceId = '' } = latchkey.server.context.registry.keys.get(key.id) ?? {}
  return { keyId: key.id, organizationId, workspaceId }
}

describe('wrong input is refused, and nothing is archived:', () => {
  const wrong: [name: string, args: () => string[], message: string][] = [
    ['a time in the future', () => ['--before', '2999-01-01', '--to', folder], 'in the future'],
    ['a folder that does not exist', () => ['--before', before, '--to', `${folder}/x`], 'does not exist; create it'],
    ['a file as the folder', () => ['--before', before, '--to', import.meta.filename], 'it is not a folder'],
    ['an unknown kind', () => ['--before', before, '--to', folder, '--records', 'keys'], 'exchanges or usage'],
    ['no folder', () => ['--before', before], 'use --to, or set LATCHKEY_ARCHIVE_DIR'],
    ['no time', () => [], '--before <time> must be given'],
  ]
  for (const [name, args, message] of wrong)
    test(name, async () => {
      expect(await command('archive', ...args())).toEqual({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining(message),
      })
      expect(readdirSync(folder)).toEqual([])
    })
})

test('a second run at the same time is refused', async () => {
  const first = archive()
  await expect(archive()).rejects.toThrow('being archived already')
  expect((await first).data).toHaveLength(2)
})

test('budgets are the same before and after', async () => {
  const { orm } = latchkey.server.context
  const spent = async () => (await loadSpending(orm, Date.now())).spending.of(key.id, Date.now())
  const known = await spent()
  expect(known).toMatchObject({ ever: 750_000_000, daily: 250_000_000 })
  await archive()
  expect(await spent()).toEqual(known)
  expect(await latchkey.admin<unknown>('usage.verify')).toEqual({ ok: true, data: [], archived: archived('usage') })
})

test('a subject token that was used under replay protection stays used', async () => {
  await latchkey.admin('policies.update', { policy: 'policy', replay_protection: true })
  const token = await latchkey.mint({ jti: 'once' })
  expect((await latchkey.exchange(token)).status).toBe(200)
  await archive({ before: new Date().toISOString() })
  expect((await latchkey.exchange(token)).status).toBe(400)
})

describe('a report names the archives', () => {
  type Report = { data: Row[]; archived?: object[] }
  const report = (name: 'audit.list' | 'usage.requests' | 'usage.sum', input: object) =>
    latchkey.admin<Report>(name, input as Record<string, unknown>)

  test.each([
    ['audit.list', 'exchanges'],
    ['usage.requests', 'usage'],
    ['usage.sum', 'usage'],
  ] as const)('%s, when its time lies in one, and only then', async (name, kind) => {
    expect((await report(name, {})).archived).toBeUndefined()
    await archive()
    expect((await report(name, {})).archived).toEqual(archived(kind))
    expect((await report(name, { since: oldTime })).archived).toEqual(archived(kind))
    expect((await report(name, { since: before })).archived).toBeUndefined()
    // A page of the newest rows asks for no time.
    const page = name === 'usage.sum' ? { since: before } : { limit: 1 }
    expect((await report(name, page)).archived).toBeUndefined()
    await latchkey.admin('organizations.create', { name: 'other' })
    expect((await report(name, { organization: 'other' })).archived).toBeUndefined()
  })

  test('as a line of text, and beside CSV on standard error', async () => {
    await archive()
    const line = /Rows of this time are also in archives: \w+-2024-06-10-.*\.ndjson\.gz \(2024-06-10/
    expect((await command('audit')).stdout).toMatch(line)
    expect((await command('usage')).stdout).toMatch(line)
    const asCsv = await command('usage', '--csv')
    expect(asCsv.stdout).not.toMatch(line)
    expect(asCsv.stderr).toMatch(line)
    expect((await command('usage', 'verify')).stdout).toContain('were not compared')
  })

  test('over HTTP, and where a request id is not found', async () => {
    await archive()
    const { key: text } = await latchkey.admin<{ key: string }>('keys.create', { name: 'admin', kind: 'management' })
    const headers = { authorization: `Bearer ${text}` }
    const audit = `${latchkey.server.baseUrl}/workload-identity/audit`
    expect(await (await fetch(audit, { headers })).json()).toMatchObject({ archived: archived('exchanges') })
    const gone = oldRequest.replace(/0$/, '1')
    expect((await fetch(`${audit}/${gone}`, { headers })).status).toBe(404)
    const { code, stderr } = await command('audit', 'show', gone)
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/rows of its time are in .*exchanges-2024/),
    })
  })
})

onFile('local socket').test('--status shows what runs and how far it is, and no run is begun', async () => {
  const gate = Promise.withResolvers<void>()
  const running = latchkey.server.context.work.watch('archive.run', async (onProgress) => {
    onProgress(1, 4)
    await gate.promise
  })
  const asked = await command('archive', '--status', '--json')
  const shown = { name: 'archive.run', started_at: expect.any(String), done: 1, total: 4 }
  expect([asked.code, JSON.parse(asked.stdout)]).toEqual([0, { data: [shown] }])
  expect((await command('archive', '--status')).stdout).toMatch(/^RUNNING .*\narchive\.run .* 25 %$/m)
  gate.resolve()
  await running
  expect((await command('archive', '--status')).stdout).toBe('Nothing that takes long runs now\n')
  expect((await command('archive', 'list', '--json')).stdout).not.toContain('gz')
})
