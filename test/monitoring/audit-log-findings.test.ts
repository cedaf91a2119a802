// What a running server reports of its audit log: a folder that cannot be written, an old checkpoint and an old signature of a witness, as
// findings, alerts and metrics.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSignerKey, parseVerifierKey, type VerifierKey } from '../../src/audit-log/transparency/note.ts'
import { cosign } from '../../src/audit-log/witness.ts'
import { metricsText } from '../../src/monitoring/metrics-report.ts'
import { examineNow } from '../../src/server/schedules.ts'
import { startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'

const [minute, day] = [60_000, 24 * 60 * 60_000]

let latchkey: TestServer
let temporary: ReturnType<typeof temporaryFolder>
let blocked: string
let ahead = 0
beforeAll(async () => {
  temporary = temporaryFolder()
  // A folder below a file can be written by no user at all.
  blocked = join(temporary.path, 'file')
  writeFileSync(blocked, '')
  const settings = { LATCHKEY_AUDIT_DIR: join(blocked, 'log') }
  latchkey = await startTestServer({ settings, dependencies: { now: () => Date.now() + ahead } })
})
afterAll(async () => {
  await latchkey.stop()
  temporary.remove()
})

type Finding = { area: string; code: string; message: string }
type Alert = { type: string; data: { code: string } }
async function reported() {
  const { context } = latchkey.server
  await examineNow(context)
  await context.alerts.settle()
  const { findings } = await latchkey.admin<{ findings: Finding[] }>('doctor.examine')
  const { data } = await latchkey.admin<{ data: Alert[] }>('alerts.list')
  const metrics = await metricsText(context)
  const metricOf = (name: string) => Number(new RegExp(`^latchkey_${name} (.*)$`, 'm').exec(metrics)?.[1] ?? Number.NaN)
  return {
    codes: findings.filter(({ area }) => area === 'audit_log').map(({ code }) => code),
    messages: findings.map(({ message }) => message).join('\n'),
    alerts: data.filter(({ data }) => data.code.startsWith('audit_')).map(({ type, data }) => `${type} ${data.code}`),
    isFailing: metricOf('audit_log_failing'),
    checkpointAge: (Date.now() + ahead) / 1_000 - metricOf('audit_checkpoint_timestamp_seconds'),
    cosignedAge: (Date.now() + ahead) / 1_000 - metricOf('audit_cosigned_timestamp_seconds'),
  }
}

test('a folder that cannot be written is reported, while the log goes on', async () => {
  const { size } = await latchkey.admin<{ size: number }>('audit.checkpoint')
  expect(size).toBeGreaterThan(0)
  const found = await reported()
  expect(found).toMatchObject({
    ...{ codes: ['audit_log_not_published'], isFailing: 1, alerts: ['finding.opened audit_log_not_published'] },
  })
  expect(found.messages).toContain('The audit log could not be published: ')
})

test('once it can be written, the next checkpoint catches up and the alert ends', async () => {
  rmSync(blocked)
  await latchkey.admin('audit.checkpoint')
  const found = await reported()
  expect(found).toMatchObject({ codes: [], isFailing: 0 })
  expect(found.alerts).toContain('finding.closed audit_log_not_published')
})

test('a checkpoint of more than ten minutes ago is reported, and a new one ends that', async () => {
  ahead += 9 * minute
  expect((await reported()).codes).toEqual([])
  ahead += 2 * minute
  const found = await reported()
  expect(found).toMatchObject({ codes: ['audit_checkpoint_old'] })
  expect(found.alerts).toContain('finding.opened audit_checkpoint_old')
  expect(found.messages).toContain('no checkpoint for 11 minutes')
  expect(found.checkpointAge).toBeGreaterThan(600)
  await latchkey.admin('audit.checkpoint')
  expect((await reported()).codes).toEqual([])
})

test('a signature of a witness that is more than eight days old is reported, and a new one ends that', async () => {
  const bring = async () => {
    const { origin, keys } = await latchkey.admin<{ origin: string; keys: { verifier_key: string }[] }>('audit.log')
    const logKey = parseVerifierKey(keys[0]?.verifier_key ?? '') as VerifierKey
    const folder = join(blocked, 'log', origin.split('/').at(-1) ?? '')
    const witness = createSignerKey('office', 'witness', Buffer.alloc(32, 3))
    const signed = await cosign({ folder, logKey, witness, known: undefined, now: Date.now() + ahead })
    if ('refused' in signed) throw new Error(signed.refused)
    await latchkey.admin('audit.cosign', { checkpoint: signed.note })
  }
  await bring()
  ahead += 9 * day
  await latchkey.admin('audit.checkpoint')
  const found = await reported()
  expect(found.codes).toEqual(['audit_cosignature_old'])
  expect(found.alerts).toContain('finding.opened audit_cosignature_old')
  expect(found.messages).toContain('9 days old')
  expect(found.cosignedAge).toBeGreaterThan(8 * 86_400)
  await latchkey.admin('keys.create', { name: 'something new to sign' })
  await latchkey.admin('audit.checkpoint')
  await bring()
  expect((await reported()).codes).toEqual([])
})
