// Alerts and the outbox on one database, as several nodes share it: what is raised twice, claimed twice, given up, bounded and removed.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Webhook } from '../../../db/schema/alert-schema.ts'
import { readDeliveryStates } from '../../../db/tables/alerts.ts'
import { insertWebhook } from '../../../db/tables/webhooks.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { sealCredential } from '../../../src/inference/upstream/credentials.ts'
import { type AlertDraft, createAlerts } from '../../../src/monitoring/alerts/alerts.ts'
import { createOutbox, type DeliveryOutcome } from '../../../src/monitoring/alerts/outbox.ts'
import type { SendOutcome, WebhookEvent } from '../../../src/monitoring/alerts/send.ts'
import { newSecret } from '../../../src/monitoring/alerts/signature.ts'
import { importMasterKey } from '../../../src/tokens/master-key.ts'
import { createDatabase, insertOrganizationRows, organizationRows, type TestDatabase } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

const hour = 3_600_000
const rows = organizationRows('own')
let own: TestDatabase
let writer: Writer
let masterKey: CryptoKey
let webhook: Webhook
let clock = 0
let sent: WebhookEvent[] = []
let outcomes: DeliveryOutcome[] = []
let counted: string[] = []
let reply: (event: WebhookEvent) => Promise<SendOutcome>
const arrived: SendOutcome = { ok: true, status: 204 }
const failed: SendOutcome = { ok: false, problem: 'it responds with 500', isGone: false }

beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {}, undefined, own.following)
  masterKey = await importMasterKey('ab'.repeat(32))
  webhook = {
    ...{ id: 'hook', organizationId: 'own', name: 'ops', enabled: true, url: 'https://9.9.9.9/', events: ['*'] },
    ...{ caPem: null, createdAt: 1, updatedAt: 1, deletedAt: null, managedBy: null },
    credentialEncrypted: await sealCredential(masterKey, 'hook', newSecret()),
  }
  const { orm } = own.database
  await writer.write([...insertOrganizationRows(own.database, rows), insertWebhook(orm, webhook)])
})
beforeEach(async () => {
  await own.database.commit([{ sql: 'delete from alert_deliveries', args: [] }], { isPatient: false })
  await own.database.commit([{ sql: 'delete from alerts', args: [] }], { isPatient: false })
  ;[clock, sent, outcomes, counted] = [Date.UTC(2026, 10, 26), [], [], []]
  reply = async () => arrived
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

const draft = (subject: string, more: Partial<AlertDraft> = {}): AlertDraft => ({
  ...{ organizationId: 'own', type: 'budget.reached', subject, data: { of: subject }, neededUntil: clock },
  ...more,
})

/** `onWritten` is called in the turn in which a commit of the node succeeded, `onSaved` after one with new alerts. */
function createNode({ onSaved = () => {}, onWritten = () => {} } = {}) {
  const { orm } = own.database
  const write: Writer['write'] = async (statements) => {
    await writer.write(statements)
    onWritten()
  }
  const shared = { orm, writer: { write }, now: () => clock, log: () => {} }
  const alerts = createAlerts({ ...shared, count: (type) => counted.push(type), onSaved })
  const outbox = createOutbox({
    ...{ ...shared, registry: { webhooks: new Map([[webhook.id, webhook]]) }, masterKey, random: () => 0.5 },
    send: async (_target, event) => {
      sent.push(event)
      return reply(event)
    },
    count: (outcome) => outcomes.push(outcome),
  })
  return { alerts, outbox }
}

const rowCount = async (table: string) =>
  Number((await own.database.client.execute(`select count(*) as n from ${table}`)).rows[0]?.n)
const subjects = () => sent.map(({ data }) => String(data.of)).toSorted()

test('what several nodes raise at once is saved, counted and sent once', async () => {
  const nodes = [createNode(), createNode(), createNode()]
  for (const { alerts } of nodes) alerts.raise([draft('a'), draft('b')])
  await Promise.all(nodes.map(({ alerts }) => alerts.settle()))
  await Promise.all(nodes.map(({ outbox }) => outbox.deliver()))
  await Promise.all(nodes.map(({ outbox }) => outbox.deliver()))
  expect(subjects()).toEqual(['a', 'b'])
  expect([await rowCount('alerts'), counted.length, outcomes]).toEqual([2, 2, ['delivered', 'delivered']])
})

test('what a node claimed when it was lost is sent by another one later, with the same id', async () => {
  const [lost, other] = [createNode(), createNode()]
  lost.alerts.raise([draft('a')])
  await lost.alerts.settle()
  reply = () => new Promise(() => {})
  void lost.outbox.deliver()
  while (sent.length === 0) await new Promise((resolve) => setImmediate(resolve))
  reply = async () => arrived
  await other.outbox.deliver()
  expect(sent).toHaveLength(1)
  clock += 60_000
  await other.outbox.deliver()
  expect(sent.map(({ id }) => id)).toEqual([sent[0]?.id ?? '', sent[0]?.id ?? ''])
})

test('an alert that ended can happen again, and one that did not cannot', async () => {
  const { alerts } = createNode()
  await alerts.raiseWith([draft('a')], [])
  await alerts.raiseWith([draft('a')], [])
  expect(counted).toHaveLength(1)
  await own.database.commit([{ sql: 'update alerts set ended_at = 1', args: [] }], { isPatient: false })
  await alerts.raiseWith([draft('a')], [])
  expect(counted).toHaveLength(2)
})

test('is given up after a day of failures, which are ever further apart', async () => {
  const { alerts, outbox } = createNode()
  await alerts.raiseWith([draft('a')], [])
  reply = async () => failed
  for (let minute = 0; minute < 26 * 60; minute++) {
    clock += 60_000
    await outbox.deliver()
  }
  expect(outcomes.at(-1)).toBe('given_up')
  expect(outcomes.filter((outcome) => outcome === 'given_up')).toHaveLength(1)
  expect(sent.length).toBeGreaterThan(20)
  expect(sent.length).toBeLessThan(40)
  expect(await readDeliveryStates(own.database.orm)).toMatchObject([{ waiting: 0, problem: 'it responds with 500' }])
})

/** Acts after so many turns of promises: between two of them, work can have ended that still counts as going on. */
async function afterTurns(turns: number, act: () => unknown): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await undefined
  await act()
}
const turnsTried = Array.from({ length: 25 }, (_, turns) => turns)

test('an alert that is raised in any turn in which the one before is saved is saved too', async () => {
  for (const turns of turnsTried) {
    counted = []
    let isFirst = true
    const { alerts } = createNode({
      onSaved: () => {
        if (isFirst) void afterTurns(turns, () => alerts.raise([draft(`next ${turns}`)]))
        isFirst = false
      },
    })
    alerts.raise([draft(`first ${turns}`)])
    await until(`both alerts after ${turns} turns`, () => counted.length === 2)
  }
})

test('an alert that is saved in any turn in which the one before is sent is sent too', async () => {
  for (const turns of turnsTried) {
    sent = []
    let writes = 0
    const delivered = Promise.withResolvers<void>()
    // The claim of the first alert, and that it arrived.
    const { outbox } = createNode({
      onWritten: () => {
        writes += 1
        if (writes === 2) void afterTurns(turns, () => outbox.deliver().then(delivered.resolve))
      },
    })
    const other = createNode().alerts
    await other.raiseWith([draft(`first ${turns}`)], [])
    reply = async ({ data }) => {
      if (data.of === `first ${turns}`) await other.raiseWith([draft(`next ${turns}`)], [])
      return arrived
    }
    await outbox.deliver()
    await delivered.promise
    expect([turns, subjects()]).toEqual([turns, [`first ${turns}`, `next ${turns}`]])
  }
})

test('of a receiver that fails, one event is tried at a time, and the others keep their turn', async () => {
  const { alerts, outbox } = createNode()
  await alerts.raiseWith(
    Array.from({ length: 5 }, (_, index) => draft(`a${index}`)),
    [],
  )
  reply = async () => failed
  await outbox.deliver()
  expect(sent).toHaveLength(1)
  reply = async () => arrived
  clock += 10_000
  await outbox.deliver()
  expect(new Set(subjects()).size).toBe(5)
})

test('a month later, alerts are removed unless they are still needed', async () => {
  const { alerts, outbox } = createNode()
  await alerts.raiseWith([draft('old'), draft('for ever', { neededUntil: null })], [])
  await outbox.deliver()
  clock += 29 * 24 * hour
  await outbox.clean()
  expect(await rowCount('alerts')).toBe(2)
  clock += 2 * 24 * hour
  await outbox.clean()
  expect([await rowCount('alerts'), await rowCount('alert_deliveries')]).toEqual([1, 1])
})
