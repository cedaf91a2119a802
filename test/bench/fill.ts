// Fills a database with many rows, as copies of one key, issuer and policy under other names and ids. It runs as its own process, because
// the lock on a database lasts as long as the process that took it. `bun fill.ts DATABASE '{"keys":1000,"policies":1000}'`
import { connect } from '../../db/file/connection.ts'

export type Filling = {
  keys?: number
  policies?: number
  issuers?: number
  presets?: number
  /** Rows of the ledger, of one day and one key. */
  requests?: number
  /** Totals of the current hour, each of another attribution, of one key. */
  hourTotals?: number
  /** Rows of the audit, each with the claims of a job on GitLab under the first policy. */
  exchanges?: number
  /** Rows of the ledger, over all keys and the last 30 days, with the totals of their days and hours. */
  spread?: number
  /** Exchanges over all policies and the last 30 days. */
  spreadExchanges?: number
}

const uuid = `(select lower(substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) || '-8' || substr(h, 18, 3)
  || '-' || substr(h, 21, 12)) from (select hex(randomblob(16)) || substr(n.value, 1, 0) as h))`
const now = 1_795_000_000_000

/** Otherwise the first commit would add all rows of the ledger to its totals. */
const summed = {
  into: 'usage_summed (id, usage_id)',
  rows: 'select 1, max(id) from usage where true on conflict (id) do update set usage_id = excluded.usage_id',
}

/** What a server adds up within minutes. */
const served = [
  {
    into: `served_totals (day, organization_id, upstream, workspace_id, preset_version, requests, prompt_tokens, completion_tokens, total_tokens,
     cost_nanodollars, requests_without_cost)`,
    rows: `select at / 86400000, organization_id, coalesce(upstream, ''), workspace_id, coalesce(preset_version, ''), count(*), sum(prompt_tokens),
     sum(completion_tokens), sum(total_tokens), coalesce(sum(cost_nanodollars), 0), sum(cost_nanodollars is null) from usage group by 1, 2, 3, 4, 5`,
  },
  {
    into: 'served_summed (id, usage_id, since_day)',
    rows: 'select 1, max(id), 0 from usage where true on conflict (id) do update set usage_id = excluded.usage_id',
  },
]

/** One statement for each table; `n.value` counts the rows. All belong to the first organization. */
const statements: Partial<Record<keyof Filling, { into: string; rows: string }[]>> = {
  keys: [
    {
      into: `api_keys (id, organization_id, workspace_id, owner_id, name, kind, hash, label, created_at, updated_at)`,
      rows: `select ${uuid}, w.organization_id, w.id, u.id, 'workload-' || n.value, 'inference', lower(hex(randomblob(32))),
       'sk-lk-v1-' || substr(lower(hex(randomblob(2))), 1, 4) || '…9f8e', ${now} + n.value, ${now} + n.value
     from n, (select * from workspaces limit 1) as w, (select * from users limit 1) as u`,
    },
  ],
  issuers: [
    {
      into: `issuers (id, organization_id, name, issuer_url, key_source, clock_skew_seconds, created_at, updated_at)`,
      rows: `select ${uuid}, o.id, 'issuer-' || n.value, 'https://issuer-' || n.value || '.example.com/realms/production', 'discovery', 30,
       ${now} + n.value, ${now} + n.value
     from n, (select * from organizations limit 1) as o`,
    },
    {
      into: `issuer_key_sets (issuer_id, source, jwks, fetched_at, fresh_until)`,
      rows: `select id, 'discovery of ' || issuer_url, '{"keys":[{"kty":"RSA","kid":"' || id || '","n":"' || hex(randomblob(171)) || '","e":"AQAB"}]}',
       ${now}, ${now} + 600000 from issuers where name like 'issuer-%'`,
    },
  ],
  // Each names the key with its number, as far as there are so many.
  policies: [
    {
      into: `policies (id, organization_id, issuer_id, key_id, name, audience, subject, condition, condition_environment,
       max_lifetime_seconds, created_at, updated_at)`,
      rows: `select ${uuid}, k.organization_id, i.id, k.id, 'deploy-' || n.value, 'https://inference.example.com',
       'repo:acme/service-' || n.value || ':ref:refs/heads/main',
       iif(n.value % 2 = 0, 'claims.environment == "production" && claims.team == "team-' || n.value || '"', null),
       iif(n.value % 2 = 0, 1, null), 900, ${now} + n.value, ${now} + n.value
     from n join (select min(rowid) as first, max(rowid) as last from api_keys) as r
       join api_keys as k on k.rowid = r.first + n.value % (r.last - r.first + 1)
       join (select * from issuers limit 1) as i`,
    },
  ],
  presets: [
    {
      into: `presets (id, organization_id, workspace_id, slug, name, status, creator_id, designated_version, latest_version, created_at,
       updated_at)`,
      rows: `select ${uuid}, w.organization_id, w.id, 'preset-' || n.value, 'preset-' || n.value, 'active', u.id, 1, 1, ${now} + n.value, ${now} + n.value
     from n, (select * from workspaces limit 1) as w, (select * from users limit 1) as u`,
    },
    {
      into: `preset_versions (id, preset_id, version, config, system_prompt, creator_id, created_at)`,
      rows: `select ${uuid}, n.id, 1, '{"model":"vendor/model-' || (n.value % 20) || '","temperature":0.2,"max_tokens":500}',
       'You are a helpful assistant that answers in plain English and keeps it short.', n.creator_id, n.created_at
     from (select *, slug as value from presets where slug like 'preset-%') as n`,
    },
  ],
  requests: [
    {
      into: `usage (at, request_id, organization_id, workspace_id, key_id, endpoint, model, status, streamed, completed, prompt_tokens,
       completion_tokens, total_tokens, usage_source, duration_milliseconds)`,
      rows: `select ${now} + n.value, ${uuid}, k.organization_id, k.workspace_id, k.id, '/chat/completions', 'vendor/model', 200, 0, 1, 412, 187, 599,
       'upstream', 900
     from n, (select * from api_keys limit 1) as k`,
    },
    summed,
    ...served,
  ],
  hourTotals: [
    {
      into: `hour_totals (hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars)`,
      rows: `select unixepoch() / 3600, k.id, '', 'repository-' || n.value, 'vendor/model', 3, 1797, 1797000
     from n, (select * from api_keys limit 1) as k`,
    },
  ],
  exchanges: [
    {
      into: `exchange_audit (at, request_id, outcome, organization_id, policy_id, issuer_id, key_id, policy_named, subject, subject_token_id,
       subject_token_sha256, access_token_id, access_token_expires_at, client_address, recorded_claims)`,
      rows: `select ${now} + n.value, ${uuid}, 'issued', p.organization_id, p.id, p.issuer_id, p.key_id, p.id,
       'project_path:acme/app-' || (n.value % 50) || ':ref_type:branch:ref:main', ${uuid}, lower(hex(randomblob(32))), ${uuid}, ${now} + n.value,
       '192.0.2.7', '{"claims":{"aud":"latchkey-tests","namespace_id":"20","project_id":"' || (n.value % 50) || '","job_project_id":"' ||
       (n.value % 50) || '","job_namespace_id":"20","namespace_path":"acme","project_path":"acme/app-' || (n.value % 50) ||
       '","job_project_path":"acme/app-' || (n.value % 50) || '","job_namespace_path":"acme","ci_config_ref_uri":"gitlab.com/acme/app-' ||
       (n.value % 50) || '//.gitlab-ci.yml@refs/heads/main","ref_protected":"true","ref":"main","ref_path":"refs/heads/main","sha":"' ||
       lower(hex(randomblob(20))) || '","environment":"production"},"absent":["environment_protected"]}'
     from n, (select * from policies limit 1) as p`,
    },
  ],
}

const month = 30 * 24 * 60 * 60 * 1_000
const fromNow = `(unixepoch() * 1000 - ${month} + n.value * (${month} / last.n))`
const ofKeys = `n join (select max(value) as n from n) as last join (select min(rowid) as first, count(*) as size from api_keys) as r
       join api_keys as k on k.rowid = r.first + n.value * 7919 % r.size`
Object.assign(statements, {
  spread: [
    {
      into: `usage (at, request_id, organization_id, workspace_id, key_id, policy_id, endpoint, model, status, streamed, completed, prompt_tokens,
       completion_tokens, total_tokens, usage_source, duration_milliseconds, client_left, cost_nanodollars)`,
      rows: `select ${fromNow}, ${uuid}, k.organization_id, k.workspace_id, k.id, null, '/chat/completions', 'vendor/model-' || (n.value % 20),
       200, 0, 1, 412, 187, 599, 'upstream', 900, 0, 900000 from ${ofKeys}`,
    },
    {
      into: `day_totals (key_id, day, requests, prompt_tokens, completion_tokens, total_tokens, cost_nanodollars)`,
      rows: `select key_id, at / 86400000, count(*), sum(prompt_tokens), sum(completion_tokens), sum(total_tokens), sum(cost_nanodollars)
       from usage group by 1, 2 on conflict do nothing`,
    },
    {
      into: `hour_totals (hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars, prompt_tokens, completion_tokens)`,
      rows: `select at / 3600000, key_id, coalesce(policy_id, ''), '', model, count(*), sum(total_tokens), sum(cost_nanodollars),
       sum(prompt_tokens), sum(completion_tokens) from usage group by 1, 2, 3, 5 on conflict do nothing`,
    },
    summed,
    ...served,
  ],
  spreadExchanges: [
    {
      into: `exchange_audit (at, request_id, outcome, reason, organization_id, policy_id)`,
      rows: `select ${fromNow}, ${uuid}, iif(n.value % 5 = 0, 'refused', 'issued'), iif(n.value % 5 = 0, 'subject_mismatch', null),
       p.organization_id, p.id from n join (select max(value) as n from n) as last
       join (select min(rowid) as first, count(*) as size from policies) as r
       join policies as p on p.rowid = r.first + n.value * 7919 % r.size`,
    },
    {
      into: `last_uses (id, used_at, refused_at, refused_reason)`,
      rows: `select policy_id, max(iif(outcome = 'issued', at, null)), max(iif(outcome = 'refused', at, null)), max(reason)
       from exchange_audit group by 1`,
    },
  ],
} satisfies Partial<typeof statements>)

const [, , path = '', asked = '{}'] = process.argv
const client = connect(path)
// Nothing is lost if this process dies, and nothing refers to rows that are missing.
for (const pragma of [
  'locking_mode=exclusive',
  'journal_mode=off',
  'synchronous=off',
  'foreign_keys=off',
  'cache_size=-1000000',
])
  await client.execute(`pragma ${pragma}`)
for (const [kind, count] of Object.entries(JSON.parse(asked) as Filling))
  for (const { into, rows } of statements[kind as keyof Filling] ?? []) {
    const numbers = `with recursive n (value) as (select 1 union all select value + 1 from n where value < ${count})`
    await client.execute(`insert into ${into} ${numbers} ${rows}`)
  }
client.close()
