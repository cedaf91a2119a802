// Misbehaving issuers against a real server. Each exchange gets the documented response in time, memory stays bounded,
// other requests are not delayed, and the server stays healthy.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { exportJWK, type JWK } from 'jose'
import { readFilesIn } from '../support/database-file.ts'
import { type Installation, install, type Served } from '../support/installation.ts'
import { audience, postExchange, type Row, subject } from '../support/latchkey.ts'
import {
  type Behavior,
  drip,
  flood,
  head,
  type RawIssuers,
  redirect,
  reply,
  stall,
  startRawIssuers,
} from '../support/raw-issuer.ts'
import { hasDatabaseFiles } from '../support/sqld.ts'
import { createKeyPair, encodePart, type KeyPair, signToken } from '../support/subject-token.ts'

/** A third of a 300 MB document, so buffering the document would show, even briefly. */
const growthMegabytesMax = 100
const testMillisecondsMax = 30_000

const megabyte = Buffer.alloc(1024 * 1024, ' ')
const threeHundred = { 'content-length': 300 * megabyte.length }
const symmetric: JWK = { kty: 'oct', kid: 'ec', k: encodePart('known to everybody') }
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k'] as const

type Trust = { policyId: string; token: string }
type Expected = { status: number; error?: string; reason: string | null; retryAfter?: string }

let installation: Installation
let served: Served
let issuers: RawIssuers
let pairs: Record<'ec' | 'rsa' | 'weak', KeyPair>
let good: Trust
let peakAtStart: number
const behaviors = new Map<string, Behavior>()

const own = (name: keyof typeof pairs) => pairs[name].publicJwk
const keySet = (...keys: unknown[]) => reply({ keys })
const healthy: Required<Behavior> = {
  discovery: (url) => reply({ issuer: url, jwks_uri: `${url}/keys` }),
  keys: () => keySet(own('ec'), own('rsa')),
  moved: () => keySet(own('ec')),
}

const signEc = (claims: Record<string, unknown>) => signToken(pairs.ec, claims)
const signWeak: typeof signEc = (claims) => signToken(pairs.weak, claims)
const signHmac: typeof signEc = async (claims) => {
  const input = `${encodePart({ alg: 'HS256', kid: 'ec' })}.${encodePart(claims)}`
  return `${input}.${createHmac('sha256', 'known to everybody').update(input).digest('base64url')}`
}

/** RSA of 1,024 bits, which jose refuses to generate. */
async function createWeakPair(): Promise<KeyPair> {
  const rsa = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', publicExponent: Uint8Array.of(1, 0, 1) }
  const { privateKey, publicKey } = await crypto.subtle.generateKey({ ...rsa, modulusLength: 1_024 }, true, ['sign'])
  const facts = { alg: 'RS256' as const, kid: 'weak' }
  return { ...facts, privateKey, publicJwk: { ...(await exportJWK(publicKey)), ...facts, use: 'sig' } }
}

/** An issuer with its own policy, and a token that the policy accepts. */
async function trust(name: string, behavior: Behavior = {}, sign = signEc): Promise<Trust> {
  const url = `${issuers.origin}/${name}`
  behaviors.set(name, behavior)
  await served.ask('issuers.add', { name, issuer_url: url })
  const { id } = await served.ask('policies.create', { name, issuer: name, key: 'target', audience, subject })
  const exp = Math.floor(Date.now() / 1_000) + 3_600
  return { policyId: id, token: await sign({ iss: url, sub: subject, aud: audience, exp }) }
}

function exchange({ policyId, token }: Trust): Promise<Response> {
  return postExchange(served.baseUrl, { federation_policy_id: policyId, subject_token: token })
}

/** The server's peak memory, if the system reports it. */
function peakMegabytes(): number {
  if (process.platform !== 'linux') return 0
  const status = readFileSync(`/proc/${served.serving.process.pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024
}

beforeAll(async () => {
  installation = await install()
  served = await installation.serve()
  issuers = await startRawIssuers((name) => behaviors.get(name) ?? {}, healthy)
  const [ec, rsa] = await Promise.all([createKeyPair('ES256', 'ec'), createKeyPair('RS256', 'rsa')])
  pairs = { ec, rsa, weak: await createWeakPair() }
  await served.ask('keys.create', { name: 'target' })
  good = await trust('good')
  expect((await exchange(good)).status).toBe(200)
  peakAtStart = peakMegabytes()
}, testMillisecondsMax)
afterAll(async () => {
  await served.serving.stop()
  issuers.close()
  await installation.remove()
}, testMillisecondsMax)

/** Exchanges a token of the issuer. Returns the error that an admin gets who refreshes its keys at the same time. */
async function expectAnswer(issuer: string, trusted: Trust, expected: Expected): Promise<string> {
  const answer = exchange(trusted)
  const refreshed = served.ask('issuers.refresh', { issuer }).then(
    () => 'refreshed',
    (error: Error) => error.message,
  )
  const first = await Promise.race([answer.then(() => 'hostile'), exchange(good).then(({ status }) => status)])
  const response = await answer

  const { error } = (await response.json()) as { error?: string }
  const { data } = await served.ask<{ data: Row[] }>('audit.list', { limit: 1_000 })
  const record = data.find(({ request_id }) => request_id === response.headers.get('x-request-id'))
  const retryAfter = response.headers.get('retry-after') ?? undefined
  expect<unknown>({ status: response.status, error, reason: record?.reason, retryAfter }).toEqual(expected)
  const refreshOutcome = await refreshed
  expect(refreshOutcome.includes('did not answer within') ? first : 200).toBe(200)
  expect((await exchange(good)).status).toBe(200)
  expect(peakMegabytes() - peakAtStart).toBeLessThan(growthMegabytesMax)
  return refreshOutcome
}

type Unavailable = [name: string, behavior: Behavior, problem: string]

async function expectUnavailable([name, behavior, problem]: Unavailable): Promise<void> {
  const issuer = name.replaceAll(/\W+/g, '-')
  const error = { error: 'temporarily_unavailable', reason: 'issuer_keys_unavailable' }
  const expected = { status: 503, ...error, retryAfter: '1' }
  expect(await expectAnswer(issuer, await trust(issuer, behavior), expected)).toContain(problem)
}

describe('503 after 5 s for an issuer that', () => {
  const late = 'did not answer within 5000 ms'
  const rows: Unavailable[] = [
    ['never replies', { discovery: () => stall() }, late],
    ['never replies when asked for its keys', { keys: () => stall() }, late],
    ['stops in the middle of a header', { discovery: () => stall('HTTP/1.1 200 OK\r\ncontent-ty') }, late],
    ['stops after the headers', { keys: () => stall(head(200, threeHundred)) }, late],
    ['stops in the middle of the key set', { keys: () => stall(head(200, threeHundred), '{"keys":[') }, late],
    ['drips 300 MB', { keys: () => drip(head(200, threeHundred), ' ') }, late],
    ['drips headers', { discovery: () => drip('HTTP/1.1 200 OK\r\n', 'x: y\r\n') }, late],
    ['redirects and then never replies', { keys: (url) => redirect(`${url}/moved`), moved: () => stall() }, late],
  ]
  // Runs all of them at once, because one after the other would take a minute.
  for (const row of rows) test.concurrent(row[0], () => expectUnavailable(row), testMillisecondsMax)
})

describe('503 at once for an issuer that', () => {
  const keys = (sends: Behavior['keys']): Behavior => ({ keys: sends })
  const discovery = (document: (issuer: string) => unknown): Behavior => ({ discovery: (url) => reply(document(url)) })
  const pointing = (jwks_uri: unknown) => discovery((issuer) => ({ issuer, jwks_uri }))
  const elsewhere = () => redirect(`${issuers.origin.replace('127.0.0.1', 'localhost')}/good/keys`)
  const gzipped = (body: string | Uint8Array<ArrayBuffer>) =>
    reply(Bun.gzipSync(body), 200, { 'content-encoding': 'gzip' })
  const spaces = (first: string) => flood(first, megabyte, 300)
  const chunks = () => flood(head(200, { 'transfer-encoding': 'chunked' }), `100000\r\n${megabyte}\r\n`, 300)
  const failed = 'could not be fetched'
  const large = 'is larger than 262144 bytes'
  const useless = 'has no key that can verify'
  const rows: Unavailable[] = [
    ['hangs up', keys(() => ({ parts: [] })), failed],
    ['speaks no HTTP', keys(() => ({ parts: ['\0\0\r\n\r\n'] })), failed],
    ['breaks off', keys(() => ({ parts: [head(200, { 'content-length': 99 }), '{"keys":'] })), failed],
    ['redirects its discovery to another origin', { discovery: elsewhere }, 'redirects to another origin'],
    ['redirects its keys to another origin', keys(elsewhere), 'redirects to another origin'],
    ['redirects in a circle', keys((url) => redirect(`${url}/keys`)), 'redirects more than 3 times'],
    ['answers 500', { discovery: () => reply({}, 500) }, 'answered 500'],
    ['answers 500 with 300 MB', keys(() => spaces(head(500, threeHundred))), 'answered 500'],
    ['sends 300 MB', keys(() => spaces(head(200, threeHundred))), large],
    ['sends 300 MB without a length', { discovery: () => spaces(head(200)) }, large],
    ['sends 300 MB in chunks', keys(chunks), large],
    ['sends 300 MB of header', keys(() => spaces('HTTP/1.1 200 OK\r\nx: ')), failed],
    ['sends HTML', keys(() => reply('<html>')), 'did not answer with JSON'],
    ['nests its JSON without end', keys(() => reply(`{"keys":${'['.repeat(130_000)}`)), 'did not answer with JSON'],
    ['has JSON that is no key set', keys(() => reply({ keys: {} })), 'Not a JWKS'],
    ['has a list for a discovery document', discovery(() => []), 'is not a discovery document'],
    ['has no jwks_uri', pointing(undefined), 'is not a discovery document'],
    ['sends the document of another', { discovery: (url) => healthy.discovery(`${url}2`) }, 'names the issuer'],
    ['points to the service of a cloud', pointing('https://169.254.169.254/keys'), 'link-local or reserved'],
    ['points to it by IPv6', pointing('https://[::ffff:169.254.169.254]/keys'), 'link-local or reserved'],
    ['points to it without TLS', pointing('http://169.254.169.254/keys'), 'must begin with https://'],
    ['points to a file', pointing('file:///etc/passwd'), 'must begin with https://'],
    ['has 10,000 keys', keys(() => keySet(...Array(10_000).fill(own('ec')))), large],
    ['has 10,000 entries that are none', keys(() => keySet(...Array(10_000).fill({}))), 'at most 2000 are read'],
    ['has only a weak RSA key', keys(() => keySet(own('weak'))), useless],
    ['has only a symmetric key', keys(() => keySet(symmetric)), useless],
    ['compresses its keys', keys(() => gzipped(JSON.stringify({ keys: [own('ec')] }))), 'compressed'],
    ['compresses 300 MB', keys(() => gzipped(new Uint8Array(300 * megabyte.length))), 'compressed'],
    ['compresses and does not say so', keys(() => reply(Bun.gzipSync('{}'))), 'did not answer with JSON'],
  ]
  for (const row of rows) test(row[0], () => expectUnavailable(row), testMillisecondsMax)
})

describe('400 for an issuer that', () => {
  const damaged = { kty: 'EC', crv: 'P-256', kid: 'ec', x: 'AAAA', y: 'AAAA' }
  const rows: [name: string, keys: () => unknown[], reason: string, sign?: typeof signEc][] = [
    ['lacks the key', () => [own('rsa')], 'kid_unknown'],
    ['has two keys of one kid', () => [own('ec'), own('ec')], 'kid_ambiguous'],
    ['has the key for encryption', () => [{ ...own('ec'), use: 'enc' }, own('rsa')], 'kid_unknown'],
    ['has a point that is on no curve', () => [damaged], 'signature_invalid'],
    ['has entries that are no keys', () => [null, 1, 'x', [], {}, { kty: {} }, own('rsa')], 'kid_unknown'],
    ['signs with a weak RSA key', () => [own('weak'), own('rsa')], 'kid_unknown', signWeak],
    ['signs with a symmetric key', () => [symmetric, own('rsa')], 'token_algorithm', signHmac],
    ['has a symmetric key of that kid', () => [symmetric, own('rsa')], 'kid_unknown'],
  ]
  for (const [name, keys, reason, sign] of rows) {
    test(`${name}: ${reason}`, async () => {
      const issuer = name.replaceAll(' ', '-')
      const trusted = await trust(issuer, { keys: () => keySet(...keys()) }, sign)
      const expected = { status: 400, error: 'invalid_grant', reason }
      expect(await expectAnswer(issuer, trusted, expected)).toBe('refreshed')
    })
  }
})

describe('200 for an issuer that', () => {
  const issued: Expected = { status: 200, reason: null }

  test('redirects within its origin', async () => {
    const trusted = await trust('moved', { keys: (url) => redirect(`${url}/moved`) })
    expect(await expectAnswer('moved', trusted, issued)).toBe('refreshed')
  })

  test('has its key behind 1,999 entries of another form', async () => {
    const trusted = await trust('crowded', { keys: () => keySet(...Array(1_999).fill({}), own('ec')) })
    expect(await expectAnswer('crowded', trusted, issued)).toBe('refreshed')
  })

  test('publishes its private keys, which come out nowhere', async () => {
    const exported = await Promise.all([pairs.ec, pairs.rsa].map(({ privateKey }) => exportJWK(privateKey)))
    const keys = [{ ...exported[0], kid: 'ec' }, exported[1], symmetric]
    const trusted = await trust('leaky', { keys: () => keySet(...keys) })
    expect(await expectAnswer('leaky', trusted, issued)).toBe('refreshed')
    const refusal = String(await served.ask('issuers.update', { issuer: 'leaky', jwks: { keys } }).catch(String))
    expect(refusal).toContain('contains a private or secret key')

    const commands = [['show', 'leaky'], ['list'], ['verify', 'leaky']]
    const shown = await Promise.all(commands.map((words) => installation.run('issuers', ...words, '--json')))
    expect(shown.map(({ code }) => code)).toEqual([0, 0, 0])
    const stored = readFilesIn(dirname(installation.folder)).toString('latin1')
    expect(!hasDatabaseFiles || stored.includes(String(own('ec').x))).toBe(true)
    const texts = JSON.stringify(shown) + refusal + served.serving.stderr() + stored
    const secrets = keys
      .flatMap((jwk) => privateMembers.map((name) => jwk?.[name]))
      .filter((each) => each !== undefined)
    expect(secrets).toHaveLength(8)
    expect(secrets.filter((secret) => texts.includes(secret))).toEqual([])
  })
})
