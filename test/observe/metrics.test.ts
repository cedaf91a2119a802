// What the counts of requests do with names that callers and administrators choose, and with rows that are not committed.
import { expect, test } from 'bun:test'
import type { Writer } from '../../db/write/write.ts'
import { Fault } from '../../src/fault.ts'
import { labelValuesMax } from '../../src/limits.ts'
import { families } from '../../src/observe/metric-families.ts'
import { countRows, createMetrics } from '../../src/observe/metrics.ts'
import type { Sample } from '../../src/observe/series.ts'
import { auditRow, organizationRows, usageRow } from '../support/rows.ts'

const acme = organizationRows('acme')
/** Everything that a test names is in use. */
const live = { organizations: { has: () => true }, upstreams: { has: () => true } }
const hour = 60 * 60 * 1_000

function start() {
  const clock = { now: 0 }
  return { clock, metrics: createMetrics(() => clock.now) }
}

const valuesOf = (samples: Sample[] | undefined, labels: readonly string[], label: string) =>
  new Set(samples?.map((sample) => sample.labels[labels.indexOf(label)]))
const sumOf = (samples: Sample[] | undefined) => samples?.reduce((sum, { value }) => sum + value, 0)

test('models that a caller invents count as other, once an upstream served them as themselves', () => {
  const { metrics } = start()
  const count = (model: string, status: number) => metrics.countInference({ ...usageRow('r', acme), model, status })
  for (let index = 0; index < 1_000; index++) count(`invented-${index}`, 404)
  count('real', 200)
  count('real', 503)
  const { inferenceRequests } = metrics.read(live)
  const { labels } = families.inferenceRequests
  expect(valuesOf(inferenceRequests, labels, 'model')).toEqual(new Set(['other', 'real']))
  expect(sumOf(inferenceRequests)).toBe(1_002)
})

test('models, upstreams and reasons have a bounded number of values, and no request is lost', () => {
  const { metrics } = start()
  const many = 3 * labelValuesMax
  for (let index = 0; index < many; index++) {
    const name = `name-${index}`
    metrics.countInference({ ...usageRow('r', acme), model: name, upstream: name, status: 200 })
    metrics.countFault(new Fault('invalid', 'No', { reason: `reason_${'x'.repeat(index)}` }), 400)
  }
  const { inferenceRequests, refusals } = metrics.read(live)
  for (const label of ['model', 'upstream'])
    expect(valuesOf(inferenceRequests, families.inferenceRequests.labels, label).size).toBe(labelValuesMax + 1)
  expect(valuesOf(refusals, families.refusals.labels, 'reason').size).toBe(labelValuesMax + 1)
  expect([sumOf(inferenceRequests), sumOf(refusals)]).toEqual([many, many])
})

test('one organization that uses up its models and series leaves those of another', () => {
  const { metrics } = start()
  const other = organizationRows('other')
  const count = (rows: typeof acme, model: string, keyId: string) =>
    metrics.countInference({ ...usageRow('r', rows), model, keyId, status: 200, promptTokens: 1 })
  for (let index = 0; index < 30_000; index++) count(acme, `model-${index % 250}`, `key-${index % 190}`)
  count(other, 'own-model', 'own-key')
  const { inferenceRequests, tokens } = metrics.read(live)
  expect(inferenceRequests?.at(-1)?.labels.slice(0, 3)).toEqual([
    other.organization.id,
    '/chat/completions',
    'own-model',
  ])
  expect(tokens?.at(-1)).toMatchObject({ labels: [other.organization.id, expect.any(String), 'own-model', 'own-key'] })
  const ofAcme = tokens?.filter(({ labels: [organization, kind] }) => {
    return organization === acme.organization.id && (kind === 'prompt' || kind === 'other')
  })
  expect(ofAcme?.at(-1)?.labels).toEqual([acme.organization.id, 'other', 'other', 'other'])
})

test('organizations and upstreams that are gone leave, and make room for others', () => {
  const { metrics } = start()
  const count = (organization: string, upstream: string) =>
    metrics.countInference({ ...usageRow('r', acme), organizationId: organization, upstream, model: 'm', status: 200 })
  for (let index = 0; index < 2 * labelValuesMax; index++) count(`organization-${index}`, `upstream-${index}`)
  metrics.countFailover('upstream-0')
  const { labels } = families.inferenceRequests
  const valuesIn = (found: ReturnType<typeof metrics.read>, label: string) =>
    valuesOf(found.inferenceRequests, labels, label)
  expect(valuesIn(metrics.read(live), 'upstream')).toContain('upstream-0')
  const left = { organizations: new Set(['organization-1']), upstreams: new Set(['upstream-1']) }
  expect(metrics.read(left).upstreamFailovers).toEqual([])
  expect(valuesIn(metrics.read(left), 'organization')).toEqual(new Set(['organization-1', 'other']))
  count('new', 'new')
  for (const label of ['organization', 'upstream']) expect(valuesIn(metrics.read(live), label)).toContain('new')
})

test('a message that begins with the name of a member that was sent is no reason', () => {
  const { metrics } = start()
  metrics.countFault(new Fault('invalid', 'invented_member must be removed'), 400)
  expect(valuesOf(metrics.read(live).refusals, families.refusals.labels, 'reason')).toEqual(new Set(['invalid']))
})

test('the busiest keys have names, the rest is other, and other never decreases', () => {
  const { clock, metrics } = start()
  const use = (keyId: string, tokens: number) =>
    metrics.countInference({ ...usageRow('r', acme), keyId, promptTokens: tokens, status: 200 })
  const tokensOf = (key: string) =>
    sumOf(metrics.read(live).tokens?.filter(({ labels }) => labels[3] === key && labels[1] === 'prompt')) ?? 0
  for (let index = 0; index < labelValuesMax; index++) use(`idle-${index}`, 1)
  for (let times = 0; times < 10; times++) use('busy', 1)
  expect([tokensOf('busy'), tokensOf('other')]).toEqual([0, 10])
  clock.now += hour
  metrics.read(live)
  for (let times = 0; times < 10; times++) use('busy', 1)
  expect([tokensOf('busy'), tokensOf('other')]).toEqual([10, 10])
  const keys = valuesOf(metrics.read(live).tokens, families.tokens.labels, 'key')
  expect(keys.size).toBe(labelValuesMax + 1)
})

test('the reason of a refusal is a word of the program, never a value', () => {
  const { metrics } = start()
  const reasons: [fault: Fault, reason: string][] = [
    [new Fault('rate_limited', 'Slow down', { detail: '192.0.2.1' }), 'rate_limited'],
    [
      new Fault('forbidden', 'No', { reason: 'model_not_allowed', subject: { kind: 'key', id: acme.key.id } }),
      'model_not_allowed',
    ],
    [new Fault('not_found', 'No inference server serves the model "x"'), 'not_found'],
  ]
  for (const [fault, reason] of reasons) {
    metrics.countFault(fault, 400)
    expect(metrics.read(live).refusals?.at(-1)?.labels).toEqual([reason])
  }
})

test('an exchange whose record was not committed counts as refused', async () => {
  const { metrics } = start()
  const disk = { isFull: true }
  const appendAudit = async () => {
    if (disk.isFull) throw new Error('full')
  }
  const writer = countRows({ appendAudit } as unknown as Writer, metrics, () => 10)
  await expect(writer.appendAudit(auditRow('a'))).rejects.toThrow('full')
  disk.isFull = false
  await writer.appendAudit(auditRow('b'))
  const counted = metrics
    .read(live)
    .exchanges?.map(({ labels: [, outcome, reason], value }) => [outcome, reason, value])
  expect(counted).toEqual([
    ['refused', 'unrecorded', 1],
    [auditRow('b').outcome, auditRow('b').reason ?? '', 1],
  ])
})
