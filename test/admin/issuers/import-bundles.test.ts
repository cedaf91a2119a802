// Importing signed bundles: who may change the keys of an issuer, what is refused and why, and what exchanges do after the end.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationName } from '../../../src/admin/operations.ts'
import { type Fault, logTextOf } from '../../../src/fault.ts'
import { createExpiryLog } from '../../../src/server/key-expiry-log.ts'
import { createPacker, daySeconds, type TestPacker } from '../../support/bundles.ts'
import { auditOf } from '../../support/exchange-outcome.ts'
import type { Row } from '../../support/latchkey.ts'
import { issuerUrl, type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { createKeyPair, signToken } from '../../support/subject-token.ts'

let own: PastedIssuer
let border: TestPacker
let other: TestPacker
beforeAll(async () => {
  own = await startWithPastedIssuer()
  const clock = () => own.clock.now
  border = await createPacker(issuerUrl, clock)
  other = await createPacker(issuerUrl, clock, 'ES256')
  await own.admin('bundle_signers.add', { name: 'border', key: border.key.publicJwk })
  await own.admin('bundle_signers.add', { name: 'other', key: other.key.publicJwk })
})
afterAll(() => own.stop())

type Imported = { outcome: string; reason?: string; message?: string; keys_gone: object[] } & Record<string, unknown>
const importOf = async (...bundles: string[]) =>
  (await own.admin<{ data: Imported[] }>('issuers.import', { file: JSON.stringify({ bundles }) })).data
const outcomeOf = async (bundle: string) => {
  const [imported] = await importOf(bundle)
  return imported?.reason ?? imported?.outcome
}
const shown = () => own.admin<Row>('issuers.show', { issuer: 'idp' })
const change = (fields: object) => own.admin('issuers.update', { issuer: 'idp', ...fields })
const refusalOf = (name: OperationName, input: Record<string, unknown>) =>
  own.admin(name, input).then(
    () => 'accepted',
    (error: Fault) => `${error.code} ${logTextOf(error)}`,
  )
const keys = () => Object.values(own.pairs)

describe('before a signer is set,', () => {
  test('a dry run shows the keys that are added, kept and gone, and saves nothing', async () => {
    const fresh = await createKeyPair('ES256', 'fresh')
    const file = await border.pack([own.pairs.es, fresh])
    const before = await shown()
    const response = await own.admin<{ dry_run: boolean; data: Imported[] }>('issuers.import', { file, dry_run: true })
    expect(response).toMatchObject({
      dry_run: true,
      data: [
        {
          outcome: 'imported',
          issuer: 'idp',
          bundle_signer: 'border',
          sequence: 10,
          keys_added: [{ kid: 'fresh', algorithm: 'ES256' }],
          keys_kept: [{ kid: 'es', algorithm: 'ES256' }],
          keys_gone: [
            { kid: 'rs', algorithm: 'RS256' },
            { kid: 'other-es', algorithm: 'ES256' },
          ],
        },
      ],
    })
    expect(await shown()).toEqual(before)
  })

  test('a signer cannot be set while the keys are from elsewhere', async () => {
    expect(await refusalOf('issuers.update', { issuer: 'idp', bundle_signer: 'border' })).toBe(
      'conflict bundle_missing',
    )
  })
})

describe('once only the bundles of a signer are accepted,', () => {
  beforeAll(async () => {
    expect(await outcomeOf(await border.pack(keys()))).toBe('imported')
    await change({ bundle_signer: 'border' })
  })

  test('the keys verify tokens, and the issuer shows the bundle and its end', async () => {
    expect((await own.exchange(await own.sign())).status).toBe(200)
    expect(await shown()).toMatchObject({
      key_source: 'jwks',
      bundle_signer: 'border',
      keys_expire_at: new Date((Math.floor(own.clock.now / 1_000) + 30 * daySeconds) * 1_000).toISOString(),
      key_bundle: { bundle_signer: 'border', packer: 'packer', sequence: 10 },
    })
  })

  test('nothing but a bundle changes the keys, their end and the URL', async () => {
    const before = await shown()
    const { jwks } = await own.admin<{ jwks: object }>('issuers.show', { issuer: 'idp' })
    const changes = [
      ...[{ jwks }, { jwks_url: `${issuerUrl}/keys` }, { discovery: true }, { issuer_url: 'https://else.example.com' }],
      ...[{ keys_expire_at: '2099-01-01T00:00:00Z' }, { keys_expire_at: null }, { jwks, bundle_signer: 'other' }],
    ]
    for (const each of changes)
      expect(await refusalOf('issuers.update', { issuer: 'idp', ...each })).toBe('conflict bundle_only')
    expect(await refusalOf('issuers.refresh', { issuer: 'idp' })).toStartWith('invalid')
    expect(await shown()).toEqual(before)
  })

  test('each bundle that must not be accepted is refused with its own reason, and changes nothing', async () => {
    const before = await shown()
    const good = await border.pack(keys(), { seq: 11 })
    const [header, payload] = good.split('.')
    const now = Math.floor(own.clock.now / 1_000)
    const stranger = await createPacker(issuerUrl, () => own.clock.now)
    const elsewhere = await createPacker('https://else.example.com', () => own.clock.now)
    const bundles: [reason: string, bundle: string][] = [
      ['bundle_signature_invalid', `${header}.${payload}.${Buffer.alloc(64, 7).toString('base64url')}`],
      ['bundle_malformed', good.slice(0, -20)],
      ['bundle_expired', await border.pack(keys(), { seq: 11, iat: now - 40 * daySeconds, exp: now - 1 })],
      ['bundle_replayed', await border.pack(keys(), { seq: 9 })],
      ['bundle_signer_unknown', await stranger.pack(keys(), { seq: 11 })],
      ['bundle_signer_mismatch', await other.pack(keys(), { seq: 999_999 })],
      ['bundle_private_members', await border.pack(keys(), { seq: 11, keys: [{ kty: 'EC', d: 'x' }] })],
      ['bundle_issued_in_future', await border.pack(keys(), { seq: 11, iat: now + daySeconds })],
      ['bundle_issuer_unknown', await border.pack(keys(), { seq: 11, sub: `${issuerUrl}/` })],
      ['bundle_issuer_unknown', await signedFor(elsewhere, border)],
    ]
    const refused = await importOf(...bundles.map(([, bundle]) => bundle))
    expect(refused.map(({ reason }) => reason)).toEqual(bundles.map(([reason]) => reason))
    for (const { message } of refused) expect(message).toMatch(/^[A-Z].{20,}[^.]$/)
    expect(await shown()).toEqual(before)
  })

  test('a jump of the sequence by another key does not hold up the next bundle of this one', async () => {
    expect(await outcomeOf(await other.pack(keys(), { seq: 999_999 }))).toBe('bundle_signer_mismatch')
    expect(await outcomeOf(await border.pack(keys(), { seq: 12 }))).toBe('imported')
    await change({ bundle_signer: null })
    expect(await outcomeOf(await other.pack(keys(), { seq: 999_999 }))).toBe('imported')
    expect(await outcomeOf(await border.pack(keys(), { seq: 13 }))).toBe('imported')
    await change({ bundle_signer: 'border' })
  })

  test('a bundle of another key between two of this one does not let the older one in', async () => {
    await change({ bundle_signer: null })
    const file = [
      await border.pack(keys(), { seq: 15 }),
      await other.pack(keys(), { seq: 1_000_000 }),
      await border.pack(keys(), { seq: 14 }),
    ]
    expect((await importOf(...file)).map(({ reason, outcome }) => reason ?? outcome)).toEqual([
      'imported',
      'imported',
      'bundle_replayed',
    ])
    expect(await outcomeOf(await border.pack(keys(), { seq: 16 }))).toBe('imported')
    await change({ bundle_signer: 'border' })
  })

  test('the sequence of a key is kept when its signer is removed and added again', async () => {
    const old = await border.pack(keys(), { seq: 12 })
    const { issuers_affected } = await own.admin<{ issuers_affected: string[] }>('bundle_signers.remove', {
      bundle_signer: 'border',
    })
    expect(issuers_affected).toEqual(['idp'])
    expect(await outcomeOf(await border.pack(keys(), { seq: 20 }))).toBe('bundle_signer_unknown')
    const { findings } = await own.admin<{ findings: { code: string }[] }>('doctor.examine')
    expect(findings.map(({ code }) => code)).toContain('issuer_bundle_signer_removed')
    await own.admin('bundle_signers.add', { name: 'border', key: border.key.publicJwk })
    expect(await outcomeOf(await border.pack(keys(), { seq: 20 }))).toBe('bundle_signer_mismatch')
    await change({ bundle_signer: 'border' })
    expect(await outcomeOf(old)).toBe('bundle_replayed')
  })

  test('the same bundle again is no change, and of two in one file the newer one stays', async () => {
    const [older, newer] = [await border.pack(keys(), { seq: 21 }), await border.pack(keys(), { seq: 22 })]
    expect((await importOf(older, newer, older)).map(({ outcome }) => outcome)).toEqual([
      'imported',
      'imported',
      'refused',
    ])
    expect((await importOf(newer)).map(({ outcome }) => outcome)).toEqual(['unchanged'])
    expect(await shown()).toMatchObject({ key_bundle: { sequence: 22 } })
  })

  test('and the older one behind it is refused as replayed', async () => {
    const [older, newer] = [await border.pack(keys(), { seq: 23 }), await border.pack(keys(), { seq: 24 })]
    expect((await importOf(older)).map(({ outcome }) => outcome)).toEqual(['imported'])
    const read = (await importOf(newer, older)).map(({ outcome, reason }) => reason ?? outcome)
    expect(read).toEqual(['imported', 'bundle_replayed'])
  })

  test('a bundle for the issuer of another organization is refused, and changes nothing there', async () => {
    await own.admin('organizations.create', { name: 'far' })
    await own.admin('organizations.plan', { organization: 'far', plan: 'business' })
    const foreign = {
      name: 'theirs',
      issuer_url: 'https://theirs.example.com',
      jwks: { keys: [own.pairs.es.publicJwk] },
    }
    await own.admin('issuers.add', { organization: 'far', ...foreign })
    const read = () => own.admin<Row>('issuers.show', { organization: 'far', issuer: 'theirs' })
    const before = await read()
    const file = await border.pack([own.pairs.otherEs], { seq: 30, sub: foreign.issuer_url })
    const answer = await own.admin<{ data: Imported[] }>('issuers.import', { organization: 'default', file })
    expect(answer.data).toMatchObject([{ outcome: 'refused', reason: 'bundle_issuer_unknown' }])
    expect(await read()).toEqual(before)
    await own.admin('issuers.delete', { organization: 'far', issuer: 'theirs' })
  })

  test('a day of difference between the clocks refuses a bundle with the reason', async () => {
    const { now } = own.clock
    const bundle = await border.pack(keys(), { seq: 23 })
    own.clock.now = now - daySeconds * 1_000
    expect(await outcomeOf(bundle)).toBe('bundle_issued_in_future')
    own.clock.now = now
    const brief = await border.pack(keys(), { seq: 23, exp: Math.floor(now / 1_000) + daySeconds / 2 })
    own.clock.now = now + daySeconds * 1_000
    expect(await outcomeOf(brief)).toBe('bundle_expired')
    own.clock.now = now
  })
})

test('over HTTP, only a key that may write adds signers and imports bundles', async () => {
  const call = async (kind: string, method: string, path: string, body?: object) => {
    const { key } = await own.admin<{ key: string }>('keys.create', { name: crypto.randomUUID().slice(9), kind })
    const response = await fetch(`${own.server.baseUrl}/workload-identity/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: response.status, body: await response.json() }
  }
  const extra = await createPacker(issuerUrl, () => own.clock.now)
  const signer = { name: 'http', key: extra.key.publicJwk }
  expect((await call('management_read_only', 'POST', 'bundle-signers', signer)).status).toBe(403)
  expect(await call('management', 'POST', 'bundle-signers', signer)).toMatchObject({
    status: 201,
    body: { data: { name: 'http', key_id: extra.key.keyId } },
  })
  expect((await call('management_read_only', 'GET', 'bundle-signers')).status).toBe(200)
  const file = { file: await extra.pack(keys()) }
  expect((await call('management_read_only', 'POST', 'key-bundles', file)).status).toBe(403)
  expect(await call('management', 'POST', 'key-bundles', file)).toMatchObject({
    status: 200,
    body: { data: [{ outcome: 'refused', reason: 'bundle_signer_mismatch' }] },
  })
  expect((await call('management', 'POST', 'key-bundles', { file: '{' })).status).toBe(400)
  expect(await call('management', 'DELETE', 'bundle-signers/http')).toMatchObject({
    status: 200,
    body: { data: { deleted: true, issuers_affected: [] } },
  })
})

test('a signer needs a key that no other signer has, and the public half alone', async () => {
  expect(await refusalOf('bundle_signers.add', { name: 'border-2', key: border.key.publicJwk })).toStartWith('conflict')
  expect(await refusalOf('bundle_signers.add', { name: 'border', key: other.key.publicJwk })).toStartWith('conflict')
  expect(await refusalOf('bundle_signers.add', { name: 'new', key: border.key.privateJwk })).toStartWith('invalid')
  const { data } = await own.admin<{ data: Row[] }>('bundle_signers.list')
  expect(data).toMatchObject([
    { name: 'other', algorithm: 'ES256', issuers: [] },
    { name: 'border', key_id: border.key.keyId, issuers: ['idp'] },
  ])
})

test('from 14 days before the end there are warnings; after it exchanges are refused, until a new bundle is imported', async () => {
  const token = async () => own.exchange(await signToken(own.pairs.es, own.claims()))
  await importOf(await border.pack(keys(), { seq: 30 }))
  const start = own.clock.now
  const lines: string[] = []
  const { registry } = own.server.context
  const log = createExpiryLog({
    registry,
    now: () => own.clock.now,
    log: (_level, name, fields) => lines.push(`${name} ${fields?.within_days}`),
  })
  const codes = async () => {
    const { findings } = await own.admin<{ findings: { level: string; code: string }[] }>('doctor.examine')
    return findings.filter(({ code }) => code === 'issuer_keys_expire').map(({ level }) => level)
  }
  const found: unknown[] = []
  for (const day of [10, 17, 20, 24, 29.5]) {
    own.clock.now = start + day * daySeconds * 1_000
    log()
    found.push([day, ...(await codes()), (await token()).status])
  }
  expect(found).toEqual([
    [10, 200],
    [17, 'warning', 200],
    [20, 'warning', 200],
    [24, 'warning', 200],
    [29.5, 'error', 200],
  ])
  const verified = async () => (await own.admin<{ ok: boolean }>('issuers.verify', { issuer: 'idp' })).ok
  expect(await verified()).toBe(true)
  own.clock.now = start + 30 * daySeconds * 1_000
  expect(await verified()).toBe(false)
  log()
  expect(await codes()).toEqual(['error'])
  expect(lines).toEqual([
    'issuer_keys_expire 14',
    'issuer_keys_expire 7',
    'issuer_keys_expire 1',
    'issuer_keys_expired undefined',
  ])
  const refused = await token()
  expect(refused.status).toBe(400)
  expect(await auditOf(own, refused)).toMatchObject([{ reason: 'bundle_expired', error: 'invalid_grant' }])
  const metrics = await own.server.context.reportMetrics()
  const [expiry] =
    /(?<=latchkey_issuer_keys_expire_timestamp_seconds\{organization="default",issuer="idp"\} )\d+/.exec(metrics) ?? []
  expect(Number(expiry)).toBe(Math.floor(start / 1_000) + 30 * daySeconds)
  await importOf(await border.pack(keys(), { seq: 31 }))
  expect((await token()).status).toBe(200)
})

test('an issuer that was added for bundles has no keys until one is imported', async () => {
  const url = 'https://second.example.com'
  const packer = await createPacker(url, () => own.clock.now)
  await own.admin('bundle_signers.add', { name: 'second', key: packer.key.publicJwk })
  await own.admin('issuers.add', { name: 'second', issuer_url: url, bundle_signer: 'second' })
  const policy = await own.admin('policies.create', {
    ...{ name: 'second', issuer: 'second', key: 'target', audience: 'latchkey-tests', subject: 'workload-1' },
  })
  const exchange = async () => own.exchange(await own.sign({ iss: url }), { federation_policy_id: policy.id })
  const refused = await exchange()
  expect(await auditOf(own, refused)).toMatchObject([{ reason: 'bundle_missing' }])
  expect(await outcomeOf(await packer.pack(keys()))).toBe('imported')
  expect((await exchange()).status).toBe(200)
})

test('an issuer whose signer is removed before its first bundle has the default source, and can be exported', async () => {
  const named = { name: 'unbundled', issuer_url: 'https://unbundled.example.com' }
  await own.admin('issuers.add', { ...named, bundle_signer: 'other' })
  const freed = await own.admin('issuers.update', { issuer: 'unbundled', bundle_signer: null })
  expect(freed).toMatchObject({ key_source: 'discovery', bundle_signer: null, keys: [], keys_expire_at: null })
  const { organization: _all, ...document } = await own.admin<Row>('config.export', { only: ['issuers'] })
  expect(document.issuers).toContainEqual(named)
  const plan = await own.admin<{ changes: object[] }>('config.plan', { document })
  expect(plan.changes).toEqual([])
  const expiry = { issuer: 'unbundled', keys_expire_at: new Date(own.clock.now + 3_600_000).toISOString() }
  expect(await refusalOf('issuers.update', expiry)).toStartWith('invalid')
})

test('a pasted set may expire too, and is refused with its own reason', async () => {
  const url = 'https://third.example.com'
  const jwks = { keys: [own.pairs.es.publicJwk] }
  const at = new Date(own.clock.now + 3_600_000).toISOString()
  const named = { name: 'third', issuer_url: url }
  expect(await refusalOf('issuers.add', { ...named, keys_expire_at: at })).toStartWith('invalid')
  const past = new Date(own.clock.now).toISOString()
  expect(await refusalOf('issuers.add', { ...named, jwks, keys_expire_at: past })).toContain('has passed')
  const issuer = await own.admin('issuers.add', { ...named, jwks, keys_expire_at: at })
  expect(issuer).toMatchObject({ keys_expire_at: at, key_bundle: null })
  const policy = await own.admin('policies.create', {
    ...{ name: 'third', issuer: 'third', key: 'target', audience: 'latchkey-tests', subject: 'workload-1' },
  })
  const exchange = async () => own.exchange(await own.sign({ iss: url }), { federation_policy_id: policy.id })
  expect((await exchange()).status).toBe(200)
  own.clock.now += 3_600_000
  expect(await auditOf(own, await exchange())).toMatchObject([{ reason: 'issuer_keys_expired' }])
  await own.admin('issuers.update', { issuer: 'third', keys_expire_at: null })
  expect((await exchange()).status).toBe(200)
})

test('a configuration document names the signer, and never has the keys', async () => {
  const document = await own.admin<{ issuers: Row[] }>('config.export')
  const entry = document.issuers.find(({ name }) => name === 'idp')
  expect(entry).toEqual({
    name: 'idp',
    issuer_url: issuerUrl,
    bundle_signer: 'border',
    shared: false,
  } as unknown as Row)
  const before = await shown()
  const apply = (issuers: object[]) =>
    own.admin<{ counts: Record<string, number> }>('config.apply', { document: { latchkey: 1, issuers } })
  expect((await apply(document.issuers)).counts).toMatchObject({ create: 0, update: 0 })
  expect((await apply([{ ...entry, clock_skew_seconds: 60 }])).counts).toMatchObject({ update: 1 })
  expect(await shown()).toMatchObject({ key_bundle: before.key_bundle, keys: before.keys, clock_skew_seconds: 60 })
  const { jwks } = await own.admin<{ jwks: object }>('issuers.show', { issuer: 'idp' })
  const owned = { latchkey: 1, owner: 'platform', owner_locks: true, issuers: [entry] }
  await own.admin('config.apply', { document: owned, adopt: true })
  expect(await importOf(await border.pack(keys(), { seq: 40 }))).toMatchObject([{ outcome: 'imported' }])
  expect(await refusalOf('issuers.update', { issuer: 'idp', clock_skew_seconds: 5 })).toStartWith('conflict')
  await expect(apply([{ ...entry, jwks }])).rejects.toThrow('Only a signed bundle')
})

/** A bundle by one packer with the issuer of another. */
async function signedFor(issuerOf: TestPacker, packer: TestPacker): Promise<string> {
  const { sub } = JSON.parse(Buffer.from((await issuerOf.pack(keys())).split('.')[1] ?? '', 'base64url').toString())
  return packer.pack(keys(), { seq: 11, sub })
}
