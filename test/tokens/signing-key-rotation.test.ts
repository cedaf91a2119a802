// Rotation of our own signing key (reference: Signing keys): under load nothing fails, and anyone who holds a key set as long as it may be held
// verifies every token. A stolen key ends at once.
import { afterEach, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { startClock } from '../support/clock.ts'
import { install } from '../support/installation.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'

type SigningKey = { id: string; state: string }
let federation: Federation
let ahead = 0

async function start(): Promise<{ token: string; startedAt: number }> {
  ahead = 0
  const startedAt = Date.now()
  federation = await startFederation({ dependencies: { now: () => startedAt + ahead * 1_000 } })
  const exp = Math.floor(startedAt / 1_000) + 100_000
  return { token: await federation.mint({ exp }), startedAt }
}

const published = async () =>
  (await (await fetch(`${federation.server.baseUrl}/oauth/jwks`)).json()) as JSONWebKeySet & { keys: { kid: string }[] }
const states = async () =>
  (await federation.admin<{ data: SigningKey[] }>('signing_keys.list')).data.map(({ state }) => state)
const callWith = (accessToken: string) =>
  fetch(`${federation.server.baseUrl}/models`, { headers: { authorization: `Bearer ${accessToken}` } })

/** Exchanges 64 times, 32 at once; every one has to succeed. */
async function exchangeMany(token: string): Promise<string[]> {
  const issued: string[] = []
  const worker = async () => {
    for (const _ of [1, 2]) {
      const response = await federation.exchange(token)
      const reply = (await response.json()) as { access_token: string }
      expect(response.status).toBe(200)
      issued.push(reply.access_token)
    }
  }
  await Promise.all(Array.from({ length: 32 }, worker))
  return issued
}

describe('a rotation', () => {
  afterEach(() => federation.stop())

  test('under load harms no exchange, no call and no verifier', async () => {
    const { token, startedAt } = await start()
    const { baseUrl } = federation.server
    const before = await exchangeMany(token)
    const rotating = federation.admin<SigningKey>('signing_keys.rotate')
    const during = await exchangeMany(token)
    const { id } = await rotating

    const seen: { at: number; keys: JSONWebKeySet }[] = []
    const minted: { at: number; tokens: string[] }[] = [{ at: 0, tokens: [...before, ...during] }]
    for (const at of [0, 150, 309, 310, 311, 600, 899, 1_200, 1_509, 1_510, 1_511, 2_400]) {
      ahead = at
      seen.push({ at, keys: await published() })
      minted.push({ at, tokens: await exchangeMany(token) })
      for (const { tokens } of minted.filter(({ at: then }) => at < then + 900))
        expect((await callWith(tokens[0] ?? '')).status).toBe(200)
    }

    for (const { at, tokens } of minted) {
      // A set may have been fetched five minutes before a token was made, or at any time while it is valid.
      for (const { keys } of seen.filter((set) => set.at > at - 300 && set.at < at + 900)) {
        const keySet = createLocalJWKSet(keys)
        for (const text of tokens) {
          const currentDate = new Date(startedAt + at * 1_000)
          await jwtVerify(text, keySet, { issuer: baseUrl, audience: baseUrl, typ: 'at+jwt', currentDate })
        }
      }
    }
    expect((await published()).keys.map(({ kid }) => kid)).toEqual([id])
    expect(await states()).toEqual(['retired', 'signing'])
  })

  test('goes through its states, and another one waits for it', async () => {
    await start()
    expect(await states()).toEqual(['signing'])
    await federation.admin('signing_keys.rotate')
    expect(await states()).toEqual(['signing', 'next'])
    await expect(federation.admin('signing_keys.rotate')).rejects.toThrow('is already due to start signing at')
    ahead = 309
    expect(await states()).toEqual(['signing', 'next'])
    ahead = 310
    expect(await states()).toEqual(['retiring', 'signing'])
    ahead = 1_510
    expect(await states()).toEqual(['retired', 'signing'])
  })

  test('that signs at once while another key waits keeps that one from ever signing', async () => {
    const { token } = await start()
    const [first = ''] = await exchangeMany(token)
    const { id: waiting } = await federation.admin<SigningKey>('signing_keys.rotate')
    ahead = 60
    const { id } = await federation.admin<SigningKey>('signing_keys.rotate', { at_once: true })
    expect(await states()).toEqual(['retiring', 'signing', 'retiring'])
    const minted: { at: number; text: string }[] = [{ at: 0, text: first }]
    for (const at of [60, 309, 310, 959, 1_259, 1_260, 1_261, 2_400]) {
      ahead = at
      const [text = ''] = await exchangeMany(token)
      expect(decodeProtectedHeader(text).kid).toBe(id)
      minted.push({ at, text })
      for (const { text } of minted.filter(({ at: then }) => at < then + 900))
        expect((await callWith(text)).status).toBe(200)
    }
    expect((await published()).keys.map(({ kid }) => kid)).toEqual([id])
    const { id: next } = await federation.admin<SigningKey>('signing_keys.rotate')
    ahead += 310
    expect((await exchangeMany(token)).map((text) => decodeProtectedHeader(text).kid)).toContain(next)
    expect(next).not.toBe(waiting)
  })

  test('is recorded together with every key that it ended', async () => {
    const { startedAt } = await start()
    const { data: keys } = await federation.admin<{ data: SigningKey[] }>('signing_keys.list')
    const first = keys[0]?.id
    const changesBy = async (how: object) => {
      const { id } = await federation.admin<SigningKey>('signing_keys.rotate', { ...how })
      const { data } = await federation.admin<{ data: Row[] }>('audit.changes')
      const made = data.slice(0, data.findIndex(({ target_id }) => target_id === id) + 1)
      return { id, changes: made.map(({ target_id, before, after }) => ({ target_id, before, after })) }
    }
    const made = (target_id: string) => ({ target_id, before: null, after: { id: target_id, retired_at: null } })
    const ended = (target_id: string | undefined, before: number | null, after: number) => ({
      target_id,
      before: { id: target_id, retired_at: before === null ? null : new Date(before).toISOString() },
      after: { id: target_id, retired_at: new Date(after).toISOString() },
    })

    const { id: second, changes } = await changesBy({})
    const planned = startedAt + 1_510_000
    expect(changes).toMatchObject([ended(first, null, planned), made(second)])
    ahead = 310
    const third = await changesBy({ at_once: true })
    expect(third.changes).toMatchObject([ended(second, null, planned), made(third.id)])
    ahead = 1_510
    const now = startedAt + 1_510_000
    const fourth = await changesBy({})
    expect(fourth.changes).toMatchObject([ended(third.id, null, now + 1_510_000), made(fourth.id)])
    const { id: fifth, changes: revoking } = await changesBy({ revoke: true })
    expect(revoking).toMatchObject([ended(fourth.id, null, now), ended(third.id, now + 1_510_000, now), made(fifth)])
    expect(await states()).toEqual(['retired', 'retired', 'retired', 'signing', 'retired'])
    expect(JSON.stringify(revoking)).not.toContain('private')
  })

  test('that revokes ends the old keys and their tokens at once', async () => {
    const { token } = await start()
    const [old = ''] = await exchangeMany(token)
    expect((await callWith(old)).status).toBe(200)
    const { id } = await federation.admin<SigningKey>('signing_keys.rotate', { revoke: true })
    expect((await callWith(old)).status).toBe(401)
    expect((await published()).keys.map(({ kid }) => kid)).toEqual([id])
    const [fresh = ''] = await exchangeMany(token)
    expect((await callWith(fresh)).status).toBe(200)
  })
})

test('another master key makes no signing key, and its own still opens the database', async () => {
  const installation = await install()
  const file = join(installation.folder, 'master.key')
  const own = readFileSync(file)
  const refuses = async (...args: string[]) => {
    const { code, stderr } = await installation.run('signing-keys', 'rotate', ...args)
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('The master key does not fit') })
  }
  const other = '0123456789abcdef'.repeat(4)
  writeFileSync(file, other)
  await refuses()
  await refuses('--revoke')

  writeFileSync(file, own)
  let { serving } = await installation.serve()
  writeFileSync(file, other)
  await refuses('--at-once')
  writeFileSync(file, own)
  const rotated = await installation.run('signing-keys', 'rotate', '--json')
  expect(JSON.parse(rotated.stdout)).toMatchObject({ state: 'next' })
  await serving.stop()
  ;({ serving } = await installation.serve())
  const { data } = JSON.parse((await installation.run('signing-keys', 'list', '--json')).stdout) as {
    data: SigningKey[]
  }
  expect(data).toHaveLength(2)
  await serving.stop()
  await installation.remove()
}, 30_000)

test('a server rotates a key that is due when it starts, and by the local socket as by a command', async () => {
  const installation = await install()
  const listed = async () =>
    JSON.parse((await installation.run('signing-keys', 'list', '--json')).stdout) as { data: SigningKey[] }
  expect((await listed()).data).toMatchObject([{ state: 'signing' }])
  const clock = startClock(installation.folder)
  clock.moveSeconds(91 * 24 * 60 * 60)
  const due = await installation.serve(clock.program)
  clock.release()
  await due.serving.stop()
  expect(due.serving.stderr()).toContain('signing_key_rotated')
  const { data } = await listed()
  expect(data).toHaveLength(2)
  const served = await installation.serve()
  const rotated = await installation.run('signing-keys', 'rotate', '--at-once', '--json')
  expect(JSON.parse(rotated.stdout)).toMatchObject({ state: 'signing', algorithm: 'ES256' })
  await served.serving.stop()
  await installation.remove()
})
