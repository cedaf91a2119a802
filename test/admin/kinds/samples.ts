// Two values for every field that can be set, by kind: what it has initially, and after a change.
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Field } from '../../../src/admin/kinds/fields.ts'
import { type Kind, recordOf } from '../../../src/admin/kinds/kinds.ts'
import { hasOpenssl, makeCertificate } from '../../support/tls.ts'

/** `NAME` in a value stands for the name of the one that has it. */
export type Samples = Readonly<Record<string, readonly [first: unknown, second: unknown]>>

/** A kind as its table says, and what the tests need beside it. */
export type Walk = {
  kind: Kind
  /** Where one kind needs several, since its fields exclude each other. */
  about?: string
  create: string
  /** The path of HTTP, where the operations of the commands are served there. */
  path?: string
  samples: Samples
  /** Documents set it, and no export has it. */
  writeOnly?: readonly string[]
  /** Arguments of the fields that no separate option sets. */
  more?: (values: Readonly<Record<string, unknown>>) => string[]
}

const policies: Walk = {
  kind: 'policies',
  create: 'create',
  path: '/workload-identity/policies',
  samples: {
    description: ['deploys acme/app', 'deploys the rest'],
    issuer: ['idp', 'other'],
    key: ['target', 'spare'],
    audience: ['llm', 'gpu'],
    subject: ['workload', 'job'],
    condition: ['claims.team == "a"', 'claims.team == "b"'],
    attribute_to: ['claims.repository_id', 'claims.project_id'],
    required_scope: ['deploy', 'call'],
    required_token_type: ['id', 'access'],
    enabled: [true, false],
    replay_protection: [true, false],
    allowed_models: [
      ['meta/*', 'a'],
      ['b', 'a'],
    ],
    allowed_presets: [['support'], ['team*', 'a']],
    max_lifetime_seconds: [60, 120],
    tests: [
      [{ name: 'another subject', claims: { sub: 'x' }, expect: 'subject_mismatch' }],
      [{ name: 'a third subject', claims: { sub: 'y' }, expect: 'subject_mismatch' }],
    ],
    lint_exceptions: [[{ rule: 'dead', because: 'for now' }], [{ rule: 'vacuous', because: 'a demonstration' }]],
  },
  more: ({ lint_exceptions }) => {
    const [exception] = (lint_exceptions ?? []) as { rule: string; because: string }[]
    return exception === undefined ? [] : ['--because', exception.because]
  },
}

const keys: Walk = {
  kind: 'keys',
  create: 'create',
  samples: {
    hash: [hashOf('NAME'), hashOf('NAME')],
    kind: ['inference', 'inference'],
    owner: ['ada', 'ada'],
    workspace: ['staging', 'staging'],
    disabled: [false, true],
    expires_at: ['2098-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z'],
    limit: [0.1, 25],
    limit_reset: ['daily', 'monthly'],
    requests_per_minute: [5, 6],
    tokens_per_minute: [7, 8],
    allowed_models: [
      ['meta/*', 'a'],
      ['b', 'a'],
    ],
    allowed_presets: [['support'], ['team*', 'a']],
    concurrent_requests: [4, 5],
    queue_class: ['interactive', 'batch'],
    queue_weight: [2, 4],
    queue_seconds: [0, 60],
    fair_by: ['attribution', 'key'],
    labels: [{ team: 'research' }, { team: 'sales', 'cost-centre': '12' }],
    attribute_from_header: ['x-user', 'x-open-webui-user-id'],
  },
  writeOnly: ['hash'],
}

const issuer = { kind: 'issuers', create: 'add', path: '/workload-identity/issuers' } as const
const address = { issuer_url: ['https://NAME.example.com', 'https://new-NAME.example.com'] } as const
const sameAddress = { issuer_url: ['https://NAME.example.com', 'https://NAME.example.com'] } as const
const jwk = { kty: 'EC', crv: 'P-256', alg: 'ES256' }
const point = { x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU', y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0' }
const keySet = (kid: string) => ({ keys: [{ ...jwk, ...point, kid }] })
const folder = mkdtempSync(join(tmpdir(), 'lk-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const certificate = (name: string) => readFileSync(makeCertificate(folder, name).certFile, 'utf8')
const [oneCa, otherCa] = hasOpenssl ? [certificate('one'), certificate('other')] : [null, null]

const issuers: Walk[] = [
  {
    ...issuer,
    about: 'with a pasted key set',
    samples: {
      ...address,
      jwks: [keySet('a'), keySet('b')],
      keys_expire_at: ['2098-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z'],
      ca_pem: [oneCa, otherCa],
      keys_stale_seconds: [60, 120],
      clock_skew_seconds: [5, 6],
      max_token_age_seconds: [600, 660],
      shared: [true, false],
      login_client_id: ['cli', 'other cli'],
      login_scopes: ['openid', 'openid groups'],
      page_client_id: ['page', 'other page'],
      page_authentication: ['private_key_jwt', 'none'],
      page_max_age_seconds: [3_600, 28_800],
      login_redirect_uri: ['http://localhost', 'http://127.0.0.1:8912/callback'],
    },
  },
  {
    ...issuer,
    about: 'with the address of a key set',
    samples: { ...address, jwks_url: ['https://NAME.example.com/k', 'https://NAME.example.com/l'] },
  },
  { ...issuer, about: 'with a bundle signer', samples: { ...sameAddress, bundle_signer: ['border', 'gate'] } },
]

const upstreamShared: Samples = {
  base_url: ['http://10.0.0.5:8000/v1', 'http://10.0.0.6:8000/v1'],
  models: [['m/*', 'a'], ['b']],
  priority: [3, 4],
  ca_pem: [oneCa, otherCa],
  first_byte_seconds: [7, 8],
  idle_seconds: [9, 10],
  max_running: [8, 9],
  weight: [2, 3],
  affinity: ['session', 'prefix'],
  probe_path: ['/health', '/ping'],
  probe_seconds: [11, 12],
  send_priority: [true, false],
  send_fairness_id: [true, false],
  forward_headers: [['x-a', 'x-b'], ['x-c']],
  return_headers: [['x-d'], ['x-e', 'x-f']],
}
const exchange = { token_file: '/run/token', url: 'https://east.example/t', policy: 'p', audience: 'a', scope: 's' }
const upstream = { kind: 'upstreams', create: 'add', writeOnly: ['credential'], more: credentials } as const
const upstreams: Walk[] = [
  { ...upstream, about: 'with a credential', samples: { ...upstreamShared, credential: ['one', 'two'] } },
  {
    ...upstream,
    about: 'with an exchange',
    samples: { ...upstreamShared, credential_exchange: [exchange, { ...exchange, policy: 'q' }] },
  },
]

function credentials({ credential, credential_exchange: exchanged }: Readonly<Record<string, unknown>>): string[] {
  if (credential === null || exchanged === null) return ['--no-credential']
  if (typeof credential === 'string') return ['--credential-file', fileWith('credential', credential)]
  const { token_file, url, policy, audience, scope } = exchanged as typeof exchange
  const more = Object.entries({ url, policy, audience, scope }).flatMap(([name, text]) => [`--exchange-${name}`, text])
  return ['--credential', `exchange:${token_file}`, ...more]
}

const budgets: Walk = {
  kind: 'budgets',
  create: 'create',
  path: '/budgets',
  samples: {
    enabled: [true, false],
    applies_to: [
      { keys: ['spare', 'target'], models: ['meta/*'] },
      { workspaces: ['staging'], labels: { team: 'red' }, policies: ['policy'] },
    ],
    each: ['label:team', 'key'],
    windows: [
      [
        { per: 'day', usd: 2.5, requests: 100 },
        { per: 'month', usd: 20 },
      ],
      [
        { per: 'day', tokens: 5 },
        { per: 'month', usd: 1 },
      ],
    ],
    concurrent_requests: [4, 5],
    overrides: [{ red: [{ per: 'day', usd: 5 }] }, { blue: [{ per: 'month', usd: 5 }] }],
    mode: ['warn', 'block'],
    unpriced: ['refuse', 'count'],
    hold: ['off', 'worst'],
    alerts: [[50, 90], [100]],
  },
}

const webhooks: Walk = {
  kind: 'webhooks',
  create: 'add',
  path: '/webhooks',
  samples: {
    enabled: [true, false],
    url: ['https://9.9.9.9/one', 'https://9.9.9.9/two'],
    events: [['budget.reached'], ['finding.closed', 'finding.opened']],
    secret: [Buffer.alloc(24, 1).toString('base64'), Buffer.alloc(24, 2).toString('base64')],
    ca_pem: [oneCa, otherCa],
  },
  writeOnly: ['secret'],
  more: ({ secret }) => (typeof secret === 'string' ? ['--secret-file', fileWith('secret', secret)] : []),
}

export const walks: readonly Walk[] = [policies, keys, ...issuers, ...upstreams, budgets, webhooks]

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex')
}

/** The entries of the table that the walk has, and that can be set. */
export function settableIn({ kind, samples }: Walk): [string, Field][] {
  return Object.entries(recordOf(kind).fields).filter(([name]) => name in samples)
}

/** The values of the fields that may be sent there, for the one of a name. */
export function valuesFor(walk: Walk, place: 'create' | 'change' | 'entry', at: 0 | 1, name: string) {
  const sent = settableIn(walk).filter(([, field]) => field[place] !== false)
  const values = Object.fromEntries(sent.map(([field]) => [field, walk.samples[field]?.[at]]))
  return JSON.parse(JSON.stringify(values).replaceAll('NAME', name)) as Record<string, unknown>
}

/** The arguments that set these values. */
export function argumentsFor({ kind, more }: Walk, values: Readonly<Record<string, unknown>>): string[] {
  const { fields } = recordOf(kind)
  const own = Object.entries(values).flatMap(([name, value]) => argumentOf(fields[name], name, value))
  return [...own, ...(more?.(values) ?? [])]
}

function argumentOf(field: Field | undefined, name: string, value: unknown): string[] {
  const { option, form, no } = field?.flag ?? {}
  const [long = '', ...placeholder] = option?.split(' ') ?? []
  if (option === undefined) return []
  if (value === null) return no === undefined ? [] : [`--no-${long.slice(2)}`]
  if (placeholder.length === 0) return [value === true ? long : `--no-${long.slice(2)}`]
  if (form === 'text-file') return [long, fileWith(name, String(value))]
  if (form === 'json-file' || form === 'overrides') return [long, fileWith(name, JSON.stringify(value))]
  if (form === 'yes-no') return [long, value === true ? 'yes' : 'no']
  if (form === 'windows')
    return [
      long,
      ...(value as { per: string }[]).map(
        ({ per, ...amounts }) => `${per}=${Object.entries(amounts).map(([unit, amount]) => `${amount}${unit}`)}`,
      ),
    ]
  if (form === 'numbers') return [long, ...(value as number[]).map(String)]
  if (form === 'pairs') return [long, ...Object.entries(value as object).map((pair) => pair.join('='))]
  if (form === 'duration') return [long, `${value}s`]
  if (Array.isArray(value)) return [long, ...value.map((each) => (typeof each === 'object' ? each.rule : String(each)))]
  return [long, String(value)]
}

function fileWith(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
