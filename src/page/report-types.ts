// The types of what views about keys, presets, usage, servers, changes and the system read. Nothing of this file is sent to a browser.

/** What the doctor found. */
export type Needed = {
  level: 'error' | 'warning' | 'note'
  area: string
  message: string
  action: string
  names: string[]
}

export type ExchangeCounts = {
  per: 'hour' | 'day'
  since: string
  counted_since: string
  data: { at: string; issued: number; refused: number; reasons: Record<string, number> }[]
}

type UsageTotals = {
  requests: number
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  cost: number
}
export type UsageRow = UsageTotals & {
  key_id?: string
  key_name?: string | null
  policy_id?: string | null
  policy_name?: string | null
  issuer_id?: string | null
  issuer_url?: string | null
  subject?: string | null
  attribution?: string | null
  user?: string | null
  session_id?: string | null
  model?: string | null
  preset_version?: string | null
  upstream?: string | null
  day?: string
  days?: { day: string; requests: number; total_tokens: number; cost: number }[]
}
export type UsageReport = {
  by: string
  since: string
  until: string
  counted_since: string
  total: UsageTotals
  total_count: number
  data: UsageRow[]
}

export type Key = {
  id: string
  hash: string
  name: string
  label: string
  kind: 'inference' | 'management' | 'management_read_only'
  state: 'enabled' | 'disabled' | 'expired'
  disabled: boolean
  owner: string
  limit: number | null
  limit_reset: 'daily' | 'weekly' | 'monthly' | null
  usage: number
  usage_daily: number
  usage_weekly: number
  usage_monthly: number
  requests_per_minute: number | null
  tokens_per_minute: number | null
  allowed_models: string[] | null
  allowed_presets: string[] | null
  labels: Record<string, string> | null
  attribute_from_header: string | null
  expires_at: string | null
  created_at: string
  last_used_at?: string | null
}

export type PresetVersion = {
  version: number
  config: Record<string, unknown>
  system_prompt: string | null
  created_at: string
}
export type Preset = { slug: string; name: string; description: string | null; status: string; updated_at: string }

export type Upstream = {
  id: string
  name: string
  base_url: string
  has_credential: boolean
  models: string[]
  priority: number
}
export type Price = { model: string; prompt: number; completion: number; cached: number | null; updated_at: string }

export type Change = {
  id: number
  at: string
  actor: 'local' | 'key' | 'server'
  actor_key_name: string | null
  operation: string
  kind: string
  target_id: string
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
}

export type System = {
  version: string
  schema: number
  base_url: string | null
  started_at: string
  now: string
  organizations: number
  nodes: { name: string; version: string; live: boolean; lag: number; last_seen_at: string }[]
  settings: Record<string, string | null> | null
  backup: {
    folder: string | null
    every_seconds: number | null
    keep: number | null
    running: boolean
    failing: boolean
    newest_at: string | null
    last_failure_at: string | null
    last_failure: string | null
  }
  tls: { expires_at: string; failure: string | null } | null
}
export type SigningKey = { id: string; state: string; active_at: string; retired_at: string | null; revoked: boolean }

/** A session of the page. */
export type SignedIn = {
  id: string
  key_name: string
  read_only: boolean
  client_address: string | null
  created_at: string
  used_at: string
  expires_at: string
  current: boolean
}
