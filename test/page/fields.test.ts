// The page has tables of the fields that its forms set. They agree with the tables of the API.
import { describe, expect, test } from 'bun:test'
import { claimRecordings } from '../../db/schema/schema.ts'
import { affinities } from '../../db/schema/value-names.ts'
import type { Field } from '../../src/admin/kinds/fields.ts'
import { issuerFields } from '../../src/admin/kinds/issuer.ts'
import { keyFields } from '../../src/admin/kinds/key.ts'
import { priceFields } from '../../src/admin/kinds/price.ts'
import { upstreamFields } from '../../src/admin/kinds/upstream.ts'

type PageField = { form: string; of?: string; common?: unknown; options?: [string, string][] }
type Table = Readonly<Record<string, PageField>>

// Not paths that TypeScript follows: the page has its own types.
const assets = `${import.meta.dirname}/../../src/page/assets`
const { heldIn, sentFrom, numbersIn, problemsIn } = (await import(`${assets}/fields.js`)) as {
  heldIn: (table: Table, record: object | undefined) => Record<string, unknown>
  sentFrom: (table: Table, values: object) => Record<string, unknown>
  numbersIn: (table: Table, isNew?: boolean) => Record<string, { isWhole: boolean; isRequired: boolean }>
  problemsIn: (table: Table, values: object) => Record<string, string>
}
const { inFormWords } = (await import(`${assets}/words.js`)) as {
  inFormWords: (label: string, name: string, message: string) => string
}
const issuers = ((await import(`${assets}/issuer-fields.js`)) as { issuerFields: Table }).issuerFields
const keys = ((await import(`${assets}/key-fields.js`)) as { keyFields: Table }).keyFields

const installation = (await import(`${assets}/installation-fields.js`)) as Record<
  'priceFields' | 'upstreamFields' | 'organizationFields',
  Table
>

const shown = {
  issuers: {
    ...{
      name: 'n',
      issuer_url: 'u',
      key_source: 'jwks',
      jwks_url: null,
      jwks: { keys: [] },
      shared: false,
      ca_pem: null,
    },
    ...{ login_client_id: 'cli', login_scopes: null, login_redirect_uri: null },
    ...{ page_client_id: null, page_max_age_seconds: null, page_authentication: 'secret', has_page_secret: true },
    ...{ keys_expire_at: '2098-01-01T10:30:00.000Z' },
    ...{ clock_skew_seconds: 30, max_token_age_seconds: null, keys_stale_seconds: 1_000 },
  },
  keys: {
    ...{ kind: 'inference', name: 'n', expires_at: '2098-01-01T10:30:00.000Z', limit: 1_250.5, limit_reset: 'daily' },
    ...{ requests_per_minute: 60, tokens_per_minute: null, allowed_models: ['a', 'b/*'], allowed_presets: null },
    ...{ concurrent_requests: 4, queue_class: 'batch', queue_weight: 2, queue_seconds: 0, fair_by: 'attribution' },
    ...{ labels: { team: 'a=b', site: 'x' }, attribute_from_header: 'x-user' },
  },
}

for (const [kind, page, api, left, chosen] of [
  // Commands alone name signers. A source is chosen instead of named.
  ['issuers', issuers, issuerFields, ['bundle_signer', 'discovery'], ['source']],
  ['keys', keys, keyFields, ['disabled', 'hash', 'owner', 'role', 'workspace'], []],
] as const)
  describe(`the form of ${kind}`, () => {
    const table: Readonly<Record<string, Field>> = api

    test('has every field that can be set, beside those that are left to buttons and commands', () => {
      const settable = Object.keys(table).filter((name) => table[name]?.shape !== undefined)
      expect([...Object.keys(page), ...left].toSorted()).toEqual([...settable, ...chosen].toSorted())
    })

    test('sends back what it holds of a response', () => {
      const record: Readonly<Record<string, unknown>> = shown[kind]
      const sent = sentFrom(page, heldIn(page, record))
      for (const [name, { of = name, form }] of Object.entries<PageField>(page)) {
        expect([of, table[of]?.shown !== undefined]).toEqual([of, true])
        // A secret is in no response, and stays where none is typed.
        expect({ name, value: sent[name] }).toEqual({ name, value: form === 'secret' ? undefined : record[of] })
      }
    })
  })

describe('the forms of the installation', () => {
  const settable = (table: Readonly<Record<string, Field>>) =>
    Object.keys(table).filter((name) => table[name]?.shape !== undefined)
  /** Where prompts go is decided on the server, and later prices are set one by one with `from`. */
  const decidedThere = [
    'name',
    'base_url',
    'credential',
    'credential_exchange',
    'ca_pem',
    'forward_headers',
    'return_headers',
  ]

  test('have every field that can be set over HTTP', () => {
    const [prices, upstreams] = [settable(priceFields), settable(upstreamFields)]
    expect(Object.keys(installation.priceFields).toSorted()).toEqual(
      [...prices.filter((name) => name !== 'later'), 'from'].toSorted(),
    )
    expect([...Object.keys(installation.upstreamFields), ...decidedThere].toSorted()).toEqual(upstreams.toSorted())
  })

  test('send back what they hold of a response', () => {
    const price = { model: 'meta/*', prompt: 0.25, completion: 1, cached: null, image: 0.001, max_output_tokens: 4_096 }
    expect(sentFrom(installation.priceFields, heldIn(installation.priceFields, price))).toMatchObject(price)
    const upstream = { models: ['a', 'b/*'], priority: 0, weight: 3, affinity: 'prefix', send_priority: true }
    expect(sentFrom(installation.upstreamFields, heldIn(installation.upstreamFields, upstream))).toMatchObject(upstream)
  })

  test('offer the values that the API takes', () => {
    const offered = (table: Table, name: string) => table[name]?.options?.map(([value]) => value).toSorted()
    expect(offered(installation.upstreamFields, 'affinity')).toEqual([...affinities].toSorted())
    expect(offered(installation.organizationFields, 'record_claims')).toEqual([...claimRecordings].toSorted())
  })
})

test('a new one has nothing but what is common, and an empty field removes a value', () => {
  const held = heldIn(keys, undefined)
  expect(held).toMatchObject({ kind: 'inference', name: '', limit: '', allowed_models: '', labels: '', expires_at: '' })
  expect(sentFrom(keys, held)).toMatchObject({ limit: null, allowed_models: null, labels: null, expires_at: null })
  expect(sentFrom(issuers, heldIn(issuers, undefined))).toMatchObject({ shared: null, ca_pem: null, jwks: null })
})

test('a secret that is typed is sent, and nothing that is held shows one that is stored', () => {
  const held = heldIn(issuers, { has_page_secret: true, page_secret: 'stored' })
  expect([held.page_secret, sentFrom(issuers, held).page_secret]).toEqual(['', undefined])
  expect(sentFrom(issuers, { ...held, page_secret: ' typed\n' }).page_secret).toBe('typed')
})

test('a number that the API always has is required once it is there', () => {
  expect(numbersIn(issuers, true).clock_skew_seconds).toEqual({ isWhole: true, isRequired: false })
  expect(numbersIn(issuers, false)).toMatchObject({
    clock_skew_seconds: { isRequired: true },
    keys_stale_seconds: { isRequired: true },
    max_token_age_seconds: { isRequired: false },
  })
  expect(numbersIn(keys)).toMatchObject({ limit: { isWhole: false }, tokens_per_minute: { isWhole: true } })
})

test.each([
  ['team=a\nsite=x', {}],
  ['', {}],
  ['team=a=b', {}],
  ['team=a\nteam=b', { labels: '"team" has two values: keep one of its lines' }],
  [' team = a\nteam=b', { labels: '"team" has two values: keep one of its lines' }],
  ['team', { labels: 'Write "team" as name=value' }],
])('labels %j lose nothing without a message', (labels, problems) => {
  expect(problemsIn(keys, { ...heldIn(keys, undefined), labels })).toEqual(problems)
})

test.each([
  [
    'Requests a minute',
    'requests_per_minute',
    'must be at least 1 or null (was 0)',
    'must be at least 1 or empty (was 0)',
  ],
  ['Name', 'name', 'must be a string (was missing)', 'is empty'],
  ['Name', 'name', 'must be 1 to 128 characters long', 'must be 1 to 128 characters long'],
  ['Expires', 'expires_at', 'is in the past: give a time in the future', 'is in the past: give a time in the future'],
  [
    ...['Allowed models', 'allowed_models'],
    '[0] must be 1 to 256 characters long (was "") or allowed_models must be null (was [""])',
    ', entry 1, must be 1 to 256 characters long (was "")',
  ],
  ['Labels', 'labels', '.team must be a string or labels must be null (was {"team":1})', ' "team" must be a string'],
])('an error at %s is in the words of the form', (label = '', name = '', message = '', shown = '') => {
  const space = /^[[.,\s]/.test(message) ? '' : ' '
  const spaceShown = /^[,\s]/.test(shown) ? '' : ' '
  expect(inFormWords(label, name, `${name}${space}${message}`)).toBe(`${label}${spaceShown}${shown}`)
})

test('an error that is about another field, or none, stays as it is', () => {
  expect(inFormWords('Limit', 'limit', 'limit_reset needs a limit')).toBe('limit_reset needs a limit')
})
