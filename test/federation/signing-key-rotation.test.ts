// Rotation of our own signing key (decisions §5): under load nothing fails, and whoever holds a key set as long as it may be held
// verifies every token. A stolen key ends at once.
import { afterEach, describe, expect, test } from 'bun:test'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/observe/log.ts'
import { outboundFetch, resolveHost } from '../../src/runtime.ts'
import { startServer } from '../../src/server.ts'
import { install } from '../support/installation.ts'
import { type Federation, startFederation } from '../support/latchkey.ts'

type SigningKey = { id: string; state: string }
let federation: Federation
let ahead = 0

async function start(): Promise<{ token: string; startedAt: number }> {
  ahead = 0
  const startedAt = Date.now()
  federation = await startFederation({ surroundings: { now: () => startedAt + ahead * 1_000 } })
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
    for (const at of [0, 150, 299, 300, 301, 600, 899, 1_200, 1_499, 1_500, 1_501, 2_400]) {
      ahead = at
      seen.push({ at, keys: await published() })
      minted.push({ at, tokens: await exchangeMany(token) })
      for (const { at: then, tokens } of minted)
        if (at < then + 900) expect((await callWith(tokens[0] ?? '')).status).toBe(200)
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
    await expect(federation.admin('signing_keys.rotate')).rejects.toThrow('takes over at')
    ahead = 300
    expect(await states()).toEqual(['retiring', 'signing'])
    ahead = 1_500
    expect(await states()).toEqual(['retired', 'signing'])
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

test('a server rotates a key that is due when it starts, and by the local socket as by a command', async () => {
  const installation = await install()
  const listed = async () =>
    JSON.parse((await installation.run('signing-keys', 'list', '--json')).stdout) as { data: SigningKey[] }
  expect((await listed()).data).toMatchObject([{ state: 'signing' }])
  const later = Date.now() + 91 * 24 * 60 * 60 * 1_000
  const lines: string[] = []
  const server = await startServer(loadConfig({ flags: installation.env, environment: {} }), {
    now: () => later,
    fetch: outboundFetch,
    resolve: resolveHost,
    log: createLog((line) => lines.push(line)),
    onBroken: () => {},
  })
  expect(lines.join('')).toContain('signing_key_rotated')
  await server.stop()
  const { data } = await listed()
  expect(data).toHaveLength(2)
  const served = await installation.serve()
  const rotated = await installation.run('signing-keys', 'rotate', '--at-once', '--json')
  expect(JSON.parse(rotated.stdout)).toMatchObject({ state: 'signing', algorithm: 'ES256' })
  await served.serving.stop()
  await installation.remove()
})
