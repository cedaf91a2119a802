// Policies, keys, issuers and presets show when they last worked, and when and why they were last refused.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readLastUses } from '../../../db/tables/last-uses.ts'
import { createLastUses } from '../../../src/admin/operation/last-uses.ts'
import type { OperationName } from '../../../src/admin/operations.ts'
import { Fault } from '../../../src/fault.ts'
import { route } from '../../../src/inference/upstream/targets.ts'
import { install, trust } from '../../support/installation.ts'
import { type Federation, startFederation } from '../../support/latchkey.ts'
import { isServerKind } from '../../support/server-kind.ts'

type Used = { last_used_at?: string | null; last_refused_at?: string | null; last_refused_reason?: string | null }

const clock = { now: Date.now() }
let latchkey: Federation
beforeAll(async () => {
  latchkey = await startFederation({ dependencies: { now: () => clock.now } })
})
afterAll(() => latchkey.stop())

/** A second later, so that each test sees its own times. */
const tick = () => {
  clock.now += 1_000
  return new Date(clock.now).toISOString()
}
const useOf = async (name: OperationName, input: Record<string, unknown>): Promise<Used> => {
  const { last_used_at, last_refused_at, last_refused_reason } = await latchkey.admin<Used>(name, input)
  return { last_used_at, last_refused_at, last_refused_reason } as Used
}
const never = { last_used_at: null, last_refused_at: null, last_refused_reason: null }
const policyUse = (policy = 'policy') => useOf('policies.show', { policy })
const issuerUse = () => useOf('issuers.show', { issuer: 'idp' })
const keyUse = (key: string) => useOf('keys.show', { key })
const infer = (bearer: string, model = 'm') =>
  fetch(`${latchkey.server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })

describe('an exchange', () => {
  test('that is issued counts as a use of policy, issuer and key', async () => {
    expect(await policyUse()).toEqual(never)
    const last_used_at = tick()
    expect((await latchkey.exchange(await latchkey.mint())).status).toBe(200)
    for (const use of [await policyUse(), await issuerUse(), await keyUse('target')])
      expect(use).toEqual({ ...never, last_used_at })
  })

  test('that the policy refuses shows why, and counts as a use of the issuer, whose token was verified', async () => {
    const now = tick()
    await latchkey.exchange(await latchkey.mint({ sub: 'stranger' }))
    expect(await policyUse()).toMatchObject({ last_refused_at: now, last_refused_reason: 'subject_mismatch' })
    expect(await issuerUse()).toEqual({ ...never, last_used_at: now })
  })

  test('with a token that expired counts as a refusal of the issuer', async () => {
    const now = tick()
    await latchkey.exchange(await latchkey.mint({ exp: Math.floor(clock.now / 1_000) - 60 }))
    expect(await issuerUse()).toMatchObject({ last_refused_at: now, last_refused_reason: 'expired' })
  })
})

describe('somebody who only knows the id of a policy', () => {
  test('cannot make it, its key or its issuer look used, nor the key look refused', async () => {
    const [policy, key, issuer] = [await policyUse(), await keyUse('target'), await issuerUse()]
    const last_refused_at = tick()
    const [head, payload] = (await latchkey.mint()).split('.')
    const forged = `${head}.${payload}.${(await latchkey.mint({ sub: 'x' })).split('.')[2]}`
    const outcomes = [await latchkey.exchange(forged), await latchkey.exchange('no token')]
    await latchkey.admin('policies.pause', { policy: 'policy' })
    const refusedAs = async (last_refused_reason: string) =>
      expect(await policyUse()).toEqual({ ...policy, last_refused_at, last_refused_reason })
    await refusedAs('subject_token_not_jwt')
    outcomes.push(await latchkey.exchange(forged))
    await refusedAs('policy_paused')
    await latchkey.admin('policies.resume', { policy: 'policy' })
    await latchkey.admin('keys.disable', { key: 'target' })
    outcomes.push(await latchkey.exchange(forged))
    await latchkey.admin('keys.enable', { key: 'target' })
    expect(outcomes.map(({ status }) => status)).toEqual([400, 400, 400, 400])
    await refusedAs('key_disabled')
    expect([await keyUse('target'), (await issuerUse()).last_used_at]).toEqual([key, issuer.last_used_at])
  })
})

describe('a key', () => {
  test('is used by a request, and refused for its budget, its models and its state', async () => {
    const { key } = await latchkey.admin<{ key: string }>('keys.create', { name: 'app', allowed_models: ['a'] })
    const used = tick()
    expect((await infer(key, 'a')).status).toBe(200)
    expect(await keyUse('app')).toEqual({ ...never, last_used_at: used })
    const refused = tick()
    expect((await infer(key, 'b')).status).toBe(403)
    const last_used_at = used
    const last_refused_reason = 'model_not_allowed'
    expect(await keyUse('app')).toEqual({ last_used_at, last_refused_at: refused, last_refused_reason })
    await latchkey.admin('keys.disable', { key: 'app' })
    const disabled = tick()
    expect((await infer(key, 'a')).status).toBe(401)
    expect(await keyUse('app')).toEqual({
      last_used_at,
      last_refused_at: disabled,
      last_refused_reason: 'key_disabled',
    })
  })

  test('is not refused because nobody serves the model that it asks for', async () => {
    const { id } = await latchkey.admin('keys.create', { name: 'asking' })
    const upstreams = latchkey.server.context.registry.upstreamsInOrder.map((each) => ({
      ...each,
      serves: () => false,
    }))
    let fault: unknown
    try {
      route({ ...latchkey.server.context.registry, upstreamsInOrder: upstreams }, ['unknown'], id)
    } catch (error) {
      fault = error
    }
    expect(latchkey.server.context.lastUses.noteFault(fault as Fault, Date.parse(tick()))).toBeUndefined()
    expect(await keyUse('asking')).toEqual(never)
  })

  test('is not refused because somebody sends a text that reads like the reason of a refusal', async () => {
    const { id } = await latchkey.admin('keys.create', { name: 'named' })
    const fault = new Fault('invalid', `key_rate, key ${id}`)
    expect(latchkey.server.context.lastUses.noteFault(fault, Date.parse(tick()))).toBeUndefined()
    expect(await keyUse('named')).toEqual(never)
  })

  test('that manages is used by a request that manages', async () => {
    const { key } = await latchkey.admin<{ key: string }>('keys.create', { name: 'admin', kind: 'management' })
    const last_used_at = tick()
    await fetch(`${latchkey.server.baseUrl}/keys`, { headers: { authorization: `Bearer ${key}` } })
    expect(await keyUse('admin')).toEqual({ ...never, last_used_at })
  })
})

test('a preset is used by a request that names it, and refused while it is disabled', async () => {
  await latchkey.admin('presets.save', {
    preset: 'support',
    dialect: 'chat',
    body: '{"model":"m","messages":[{"role":"user","content":"x"}]}',
  })
  const presetUse = () => useOf('presets.show', { preset: 'support', last_use: true })
  expect(await presetUse()).toEqual(never)
  const used = tick()
  expect((await infer(latchkey.key.key, '@preset/support')).status).toBe(200)
  expect(await presetUse()).toEqual({ ...never, last_used_at: used })
  await latchkey.admin('presets.update', { preset: 'support', status: 'disabled' })
  const refused = tick()
  expect((await infer(latchkey.key.key, '@preset/support')).status).toBe(404)
  expect(await presetUse()).toEqual({
    last_used_at: used,
    last_refused_at: refused,
    last_refused_reason: 'preset_disabled',
  })
})

test('lists keep what has not worked since a time and was made before it, and what has never worked', async () => {
  const day = 24 * 60 * 60 * 1_000
  const { issuer, policy } = latchkey
  await latchkey.admin('policies.create', {
    ...{ name: 'old', audience: 'llm', subject: 's' },
    issuer: issuer.id,
    key: 'target',
  })
  await latchkey.admin('keys.create', { name: 'old' })
  clock.now += 90 * day
  const iat = Math.floor(clock.now / 1_000)
  await latchkey.exchange(await latchkey.mint({ iat, nbf: iat, exp: iat + 300 }))
  await latchkey.admin('policies.create', {
    ...{ name: 'new', audience: 'llm', subject: 's' },
    issuer: issuer.id,
    key: 'target',
  })
  const unused_since = new Date(clock.now - day).toISOString()
  const namesOf = async (name: OperationName, asked: Record<string, unknown>) =>
    (await latchkey.admin<{ data: { name: string }[] }>(name, asked)).data.map((row) => row.name)
  expect(await namesOf('policies.list', { unused_since })).toEqual(['old'])
  const keys = await namesOf('keys.list', { unused_since })
  expect(keys).toContain('old')
  expect(keys).not.toContain('target')
  expect(policy.name).toBe('policy')
  for (const asked of [{ never_used: true }, { never_used: true, after: '' }])
    expect(await namesOf('policies.list', asked)).toEqual(['old'])
  expect(await namesOf('policies.list', { never_used: true, unused_since })).toEqual(['old'])
  clock.now += day - 1
  expect(await namesOf('policies.list', { never_used: true })).toEqual(['old'])
  clock.now += 1
  expect(await namesOf('policies.list', { never_used: true })).toEqual(['old', 'new'])
  // A page is of the unused ones alone, and so is their number.
  const second = await latchkey.admin<{ data: { name: string }[]; total_count: number }>('policies.list', {
    ...{ never_used: true, offset: 1, limit: 1 },
  })
  expect([second.data.map(({ name }) => name), second.total_count]).toEqual([['new'], 2])
  expect(await namesOf('issuers.list', { never_used: true })).toEqual([])
  expect(await namesOf('policies.list', { never_used: false })).toEqual(['policy', 'old', 'new'])
  expect(await namesOf('keys.list', { never_used: true })).not.toContain('target')
})

test('a deleted policy and a deleted key leave no row behind, however they are named afterward', async () => {
  const { orm, lastUses } = latchkey.server.context
  const { id: key } = await latchkey.admin('keys.create', { name: 'gone' })
  const fields = { name: 'gone', issuer: 'idp', key: 'gone', audience: 'latchkey-tests', subject: 'workload-1' }
  const { id: policy } = await latchkey.admin('policies.create', fields)
  const iat = Math.floor(clock.now / 1_000)
  const token = await latchkey.mint({ iat, nbf: iat, exp: iat + 300 })
  const exchange = () => latchkey.exchange(token, { federation_policy_id: policy })
  expect((await exchange()).status).toBe(200)
  await lastUses.flush()
  const rows = () => readLastUses(orm, [key, policy])
  expect(await rows()).toHaveLength(2)
  await latchkey.admin('policies.delete', { policy: 'gone' })
  await latchkey.admin('keys.delete', { keys: [key] })
  expect((await exchange()).status).toBe(400)
  await lastUses.flush()
  expect(await rows()).toEqual([])
})

describe('what is noted', () => {
  test('keeps older refusals beside newer uses, and survives a failed commit', async () => {
    const { orm, registry, writer } = latchkey.server.context
    const [one, other] = [crypto.randomUUID(), crypto.randomUUID()]
    let isFailing = false
    const failing = {
      write: (all: Parameters<typeof writer.write>[0]) =>
        isFailing ? Promise.reject(new Error('full')) : writer.write(all),
    }
    const uses = createLastUses(orm, failing, registry)
    uses.noteUse(one, 1)
    uses.noteExchange({ ...(await lastExchange()), at: 2, policyId: other, reason: 'condition_false' })
    await uses.flush()
    uses.noteUse(one, 3)
    uses.noteUse(other, 4)
    isFailing = true
    await expect(uses.flush()).rejects.toThrow('full')
    uses.noteUse(one, 5)
    isFailing = false
    await uses.flush()
    // Another process after a stop.
    const read = await createLastUses(orm, writer, registry).read([one, other])
    expect(read.get(one)).toEqual({ id: one, usedAt: 5, refusedAt: null, refusedReason: null })
    expect(read.get(other)).toEqual({ id: other, usedAt: 4, refusedAt: 2, refusedReason: 'condition_false' })
  })

  test('keeps the newer times of another node, whichever is written later', async () => {
    const { orm, registry, writer } = latchkey.server.context
    const id = crypto.randomUUID()
    for (const [at, reason] of [
      [7, 'condition_false'],
      [6, 'subject_mismatch'],
    ] as const) {
      const uses = createLastUses(orm, writer, registry)
      uses.noteUse(id, at)
      uses.noteExchange({ ...(await lastExchange()), at, policyId: id, reason })
      await uses.flush()
    }
    expect(await readLastUses(orm, [id])).toEqual([{ id, usedAt: 7, refusedAt: 7, refusedReason: 'condition_false' }])
  })

  test('is exact after a server has stopped', async () => {
    const installation = await install()
    const served = await installation.serve()
    const { apiKey } = await trust(served, await installation.startIssuer())
    const before = new Date().toISOString()
    const url = `${served.baseUrl}/chat/completions`
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] })
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200)
    const running = await served.ask<Used>('keys.show', { key: 'target' })
    await served.serving.stop()
    const { stdout } = await installation.run('keys', 'show', 'target', '--json')
    const { last_used_at: at } = JSON.parse(stdout) as Used
    expect(String(at) >= before && String(at) < '3').toBe(true)
    // A node writes it to a server database once a minute, and when it stops.
    expect(running.last_used_at).toBe(isServerKind ? null : at)
    expect((await installation.run('keys', 'list', '--unused', '1h')).stdout).not.toContain('target')
    await installation.remove()
  })
})

async function lastExchange() {
  const { exchangeAudit } = await import('../../../db/schema/record-schema.ts')
  const [row] = await latchkey.server.context.orm.select().from(exchangeAudit).limit(1)
  if (row === undefined) throw new Error('There is no exchange')
  return row
}
