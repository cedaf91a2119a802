// A change waits for its turn. What its key may do is judged when the turn comes: a key that is disabled by then changes nothing.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type OperationName, operations } from '../../../src/admin/operations.ts'
import { mayDo } from '../../../src/keys/roles.ts'
import { insertLiveSession } from '../../support/admin-page.ts'
import { createPacker } from '../../support/bundles.ts'
import { type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'
import { createKeyPair } from '../../support/subject-token.ts'

/** What reads, and what asks an issuer or an upstream: these make no change that an admin is named for. */
const others: OperationName[] = [
  'upstreams.top',
  'alerts.list',
  'audit.log',
  'audit.checkpoint',
  'audit.prove',
  'audit.verify',
  'audit.cosign',
  'audit.erase',
  'audit.trail',
  'organizations.list',
  'workspaces.list',
  'keys.list',
  'keys.show',
  'issuers.list',
  'issuers.show',
  'issuers.verify',
  'issuers.refresh',
  'bundle_signers.list',
  'policies.list',
  'policies.show',
  'organizations.show',
  'policies.check',
  'policies.lint',
  'policies.test',
  'policies.audited_test',
  'policies.backtest',
  'config.export',
  'config.plan',
  'audit.list',
  'audit.show',
  'audit.changes',
  'audit.counts',
  'usage.sum',
  'usage.report',
  'usage.verify',
  'usage.requests',
  'usage.refused',
  'signing_keys.list',
  'health.show',
  'system.show',
  'doctor.examine',
  'backup.create',
  'backup.show',
  'archive.run',
  'archive.list',
  'archive.verify',
  'nodes.list',
  'server.reload',
  'server.check',
  'server.work',
  'upstreams.list',
  'upstreams.show',
  'upstreams.check',
  'prices.list',
  'budgets.list',
  'budgets.show',
  'budgets.simulate',
  'budgets.of_workspace',
  'budgets.of_interval',
  'webhooks.list',
  'webhooks.show',
  'webhooks.test',
  'presets.list',
  'presets.show',
  'presets.versions',
  'presets.version',
  'presets.diff',
  'presets.apply',
  'sessions.link',
  'sessions.list',
]

const url = 'https://idp.example.com'
const policy = { issuer: 'idp', key: 'target', audience: 'a', subject: 's' }
const upstream = { base_url: 'http://127.0.0.1:1/v1' }
const price = { prompt: 1, completion: 1 }
const budget = { windows: [{ per: 'month', usd: 1_000 }] }
const webhook = { url: 'https://9.9.9.9/hook' }
const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
const save = (preset: string) => ({ preset, dialect: 'chat', body })

const [packer, otherPacker] = await Promise.all([createPacker(`${url}/idp`, Date.now), createPacker(url, Date.now)])
const bundle = await packer.pack([await createKeyPair('ES256', 'es')])

const sessionId = crypto.randomUUID()

/** What the changes below rest on; each has a thing to itself. */
const there: [name: OperationName, input: object][] = [
  // Without a user, so that who makes a preset there has to be made as well.
  ['organizations.create', { name: 'for save' }],
  ['organizations.create', { name: 'for plan' }],
  ...['target', 'for update', 'for disable', 'for enable', 'for delete'].map((name): (typeof there)[number] => [
    'keys.create',
    { name },
  ]),
  ['keys.disable', { key: 'for enable' }],
  ...['idp', 'for update', 'for delete'].map((name): (typeof there)[number] => [
    'issuers.add',
    { name, issuer_url: `${url}/${encodeURI(name)}` },
  ]),
  ['bundle_signers.add', { name: 'for import', key: packer.key.publicJwk }],
  ...['for update', 'for pause', 'for resume', 'for delete'].map((name): (typeof there)[number] => [
    'policies.create',
    { ...policy, name },
  ]),
  ['policies.pause', { policy: 'for resume' }],
  ...['for update', 'for remove'].map((name): (typeof there)[number] => ['upstreams.add', { ...upstream, name }]),
  ['prices.set', { prices: [{ ...price, model: 'for-remove' }] }],
  ...['for update', 'for delete'].map((name): (typeof there)[number] => ['budgets.create', { ...budget, name }]),
  ['budgets.set_interval', { workspace_ref: 'default', interval: 'daily', limit_usd: 1 }],
  ...['for update', 'for delete'].map((name): (typeof there)[number] => ['webhooks.add', { ...webhook, name }]),
  ...['for-version', 'for-update', 'for-archive', 'for-restore'].map((preset): (typeof there)[number] => [
    'presets.save',
    save(preset),
  ]),
  ['presets.archive', { preset: 'for-restore' }],
]

/** What a running server refuses anyhow. */
const withoutServer: OperationName[] = ['init', 'master_key.replace']

/** Every other operation, with an input that it takes. */
const changes: [name: OperationName, input: object, what?: string][] = [
  ['organizations.create', { name: 'new' }],
  ['organizations.plan', { organization: 'for plan', plan: 'business' }],
  ['organizations.update', { organization: 'for plan', record_claims: 'off' }],
  ['workspaces.create', { name: 'new' }],
  ['keys.create', { name: 'new', owner: 'somebody' }],
  ['keys.update', { key: 'for update', requests_per_minute: 5 }],
  ['keys.disable', { key: 'for disable' }],
  ['keys.enable', { key: 'for enable' }],
  ['keys.delete', { key: 'for delete' }],
  ['issuers.add', { name: 'new', issuer_url: `${url}/new` }],
  ['issuers.update', { issuer: 'for update', clock_skew_seconds: 5 }],
  ['issuers.delete', { issuer: 'for delete' }],
  ['issuers.import', { file: bundle }],
  ['bundle_signers.add', { name: 'new', key: otherPacker.key.publicJwk }],
  ['bundle_signers.remove', { bundle_signer: 'for import' }],
  ['policies.create', { ...policy, name: 'new' }],
  ['policies.update', { policy: 'for update', subject: 'other' }],
  ['policies.pause', { policy: 'for pause' }],
  ['policies.resume', { policy: 'for resume' }],
  ['policies.delete', { policy: 'for delete' }],
  ['upstreams.add', { ...upstream, name: 'new' }],
  ['upstreams.update', { upstream: 'for update', priority: 5 }],
  ['upstreams.tune', { upstream: 'for update', weight: 5 }],
  ['upstreams.remove', { upstream: 'for remove' }],
  ['prices.set', { prices: [{ ...price, model: 'new' }] }],
  ['prices.remove', { model: 'for-remove' }],
  ['budgets.create', { ...budget, name: 'new' }],
  ['budgets.update', { budget: 'for update', mode: 'warn' }],
  ['budgets.top_up', { budget: 'for update', usd: 1, until: '2099-01-01', because: 'a test' }],
  ['budgets.delete', { budget: 'for delete' }],
  ['keys.rotate', { key: 'for update' }],
  ['budgets.set_interval', { workspace_ref: 'default', interval: 'monthly', limit_usd: 5 }],
  ['budgets.delete_interval', { workspace_ref: 'default', interval: 'daily' }],
  ['webhooks.add', { ...webhook, name: 'new' }],
  ['webhooks.update', { webhook: 'for update', enabled: false }],
  ['webhooks.delete', { webhook: 'for delete' }],
  ['presets.save', { ...save('new'), organization: 'for save' }, ' of a new one, with a user who makes it'],
  ['presets.save', save('for-version'), ' of one that is there'],
  ['presets.update', { preset: 'for-update', name: 'Updated' }],
  ['presets.archive', { preset: 'for-archive' }],
  ['presets.restore', { preset: 'for-restore' }],
  ['config.apply', { document: { latchkey: 1, keys: [{ name: 'from a document' }] } }],
  ['signing_keys.rotate', { at_once: true }],
  ['audit.rotate_key', {}],
  ['sessions.end', { session: sessionId }],
]

let served: TestServer
let boss: Row
let writes = 0
/** Whether an operation runs alone, so that every write is its own. */
let isRunning = false
beforeAll(async () => {
  served = await startTestServer()
  boss = await served.admin('keys.create', { name: 'boss', kind: 'management' })
  for (const [name, input] of there) await served.server.runByName(name, input)
  await insertLiveSession(served.server.context, sessionId)
  const { writer } = served.server.context
  const { change, write } = writer
  // The key of the audit log is kept without a record of a change: the log itself has one.
  writer.write = (statements) => {
    if (isRunning) writes += 1
    return write(statements)
  }
  writer.change = (plan) => {
    writes += 1
    return change(plan)
  }
})
beforeEach(async () => {
  await served.admin('keys.enable', { key: boss.id })
  writes = 0
})
afterAll(() => served.stop())

const run = (name: OperationName, input: object) =>
  served.server.runByName(name, input, { kind: 'key', keyId: boss.id, requestId: crypto.randomUUID() })

/** Asks for a change while another one has the turn and the end of the key is next; gives what became of it. */
async function runTooLate(name: OperationName, input: object): Promise<unknown> {
  const turn = Promise.withResolvers<void>()
  const first = served.server.context.runExclusive(() => turn.promise)
  const disabled = served.admin('keys.disable', { key: boss.id })
  const outcome = run(name, input).then(
    () => 'done',
    (error: unknown) => error,
  )
  turn.resolve()
  await Promise.all([first, disabled])
  return outcome
}

test('the operations that mutate are these and no others, so that each new one is a decision', () => {
  const mutating = Object.entries<{ mutates: boolean }>(operations).filter(([, { mutates }]) => mutates)
  const expected = new Set<string>([...withoutServer, ...changes.map(([name]) => name)])
  expect(mutating.map(([name]) => name).toSorted()).toEqual([...expected].toSorted())
  expect(Object.keys(operations).toSorted()).toEqual([...expected, ...others].toSorted())
})

describe('with a key that is disabled meanwhile, nothing is changed by', () => {
  // What is left to the machine, a key is refused before it waits (test/keys/roles.test.ts).
  for (const [name, input, what = ''] of changes.filter(([each]) => mayDo('admin', each))) {
    test(name + what, async () => {
      expect(await runTooLate(name, input)).toMatchObject({
        code: 'unauthorized',
        reason: 'key_disabled',
        subject: { kind: 'key', id: boss.id },
      })
      // The end of the key itself.
      expect(writes).toBe(1)
      await served.admin('keys.enable', { key: boss.id })
      writes = 0
      isRunning = true
      await run(name, input)
      isRunning = false
      expect(writes).toBeGreaterThan(0)
    })
  }
})

test('a change whose session ends while it waits for its turn is refused and not made', async () => {
  const { context, runByName } = served.server
  const ending = crypto.randomUUID()
  await insertLiveSession(context, ending)
  const turn = Promise.withResolvers<void>()
  const first = context.runExclusive(() => turn.promise)
  const ended = served.admin('sessions.end', { session: ending })
  const actor = { kind: 'key' as const, keyId: boss.id, requestId: crypto.randomUUID(), sessionId: ending }
  const made = runByName('keys.create', { name: 'too late' }, actor).then(
    () => 'made',
    (error: unknown) => error,
  )
  turn.resolve()
  await Promise.all([first, ended])
  expect(await made).toMatchObject({ code: 'unauthorized' })
  await expect(served.admin('keys.show', { key: 'too late' })).rejects.toMatchObject({ code: 'not_found' })
})
