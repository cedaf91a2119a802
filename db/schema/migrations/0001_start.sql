-- The first schema: who may do what (organizations to policies), what is trusted (issuers, signing keys), what happened (audit, usage).
-- Rows that others refer to are marked deleted, never removed, so that audit and usage always name something that exists.

create table organizations (
  id text primary key,
  name text not null unique,
  plan text not null check (plan in ('free', 'business', 'enterprise')),
  created_at integer not null,
  updated_at integer not null
) strict;

create table workspaces (
  id text primary key,
  organization_id text not null references organizations (id),
  name text not null,
  created_at integer not null,
  unique (organization_id, name),
  unique (id, organization_id)
) strict;

create table users (
  id text primary key,
  organization_id text not null references organizations (id),
  name text not null,
  created_at integer not null,
  unique (organization_id, name),
  unique (id, organization_id)
) strict;

create table api_keys (
  id text primary key,
  organization_id text not null,
  workspace_id text not null,
  owner_id text not null,
  name text not null,
  kind text not null check (kind in ('inference', 'management', 'management_read_only')),
  hash text not null unique check (length(hash) = 64),
  label text not null,
  disabled integer not null default 0 check (disabled in (0, 1)),
  created_at integer not null,
  updated_at integer not null,
  deleted_at integer,
  unique (id, organization_id),
  foreign key (workspace_id, organization_id) references workspaces (id, organization_id),
  foreign key (owner_id, organization_id) references users (id, organization_id)
) strict;

create unique index api_keys_name on api_keys (organization_id, name) where deleted_at is null;

create table issuers (
  id text primary key,
  organization_id text not null references organizations (id),
  name text not null,
  issuer_url text not null,
  key_source text not null check (key_source in ('discovery', 'jwks_url', 'jwks')),
  jwks_url text check ((key_source = 'jwks_url') = (jwks_url is not null)),
  jwks text check ((key_source = 'jwks') = (jwks is not null)),
  clock_skew_seconds integer not null,
  created_at integer not null,
  updated_at integer not null,
  deleted_at integer,
  unique (id, organization_id)
) strict;

create unique index issuers_name on issuers (organization_id, name) where deleted_at is null;
create unique index issuers_issuer_url on issuers (organization_id, issuer_url) where deleted_at is null;

-- The last good key set of an issuer, so that a restart during the issuer's outage still verifies.
-- It counts only while source is still where the issuer's keys come from.
create table issuer_key_sets (
  issuer_id text primary key references issuers (id),
  source text not null,
  jwks text not null,
  fetched_at integer not null,
  fresh_until integer not null
) strict;

-- The composite keys make it impossible to bind a policy to another organization's issuer or key.
create table policies (
  id text primary key,
  organization_id text not null references organizations (id),
  issuer_id text not null,
  key_id text not null,
  name text not null,
  audience text not null,
  subject text,
  condition text,
  required_scope text,
  required_token_type text,
  enabled integer not null default 1 check (enabled in (0, 1)),
  max_lifetime_seconds integer not null check (max_lifetime_seconds between 60 and 900),
  created_at integer not null,
  updated_at integer not null,
  deleted_at integer,
  check (subject is not null or condition is not null),
  foreign key (issuer_id, organization_id) references issuers (id, organization_id),
  foreign key (key_id, organization_id) references api_keys (id, organization_id)
) strict;

create unique index policies_name on policies (organization_id, name) where deleted_at is null;

create table signing_keys (
  id text primary key,
  algorithm text not null check (algorithm = 'ES256'),
  public_jwk text not null,
  private_key_encrypted text not null,
  created_at integer not null,
  active_at integer not null,
  retired_at integer
) strict;

-- Append-only, in the order of time: the integer key is the only index, so that a row costs microseconds.
create table exchange_audit (
  id integer primary key,
  at integer not null,
  request_id text not null,
  outcome text not null check (outcome in ('issued', 'refused')),
  error text,
  reason text,
  detail text,
  organization_id text references organizations (id),
  policy_id text references policies (id),
  issuer_id text references issuers (id),
  key_id text references api_keys (id),
  policy_named text,
  subject text,
  subject_token_id text,
  subject_token_sha256 text,
  access_token_id text,
  access_token_expires_at integer,
  client_address text
) strict;

-- Append-only as well. policy_id and issuer_id come from the access token, for reports alone (reference: Access token), and bind nothing.
create table usage (
  id integer primary key,
  at integer not null,
  request_id text not null,
  organization_id text not null references organizations (id),
  workspace_id text not null references workspaces (id),
  key_id text not null references api_keys (id),
  policy_id text,
  issuer_id text,
  subject text,
  access_token_id text,
  endpoint text not null,
  model text,
  status integer not null,
  streamed integer not null check (streamed in (0, 1)),
  completed integer not null check (completed in (0, 1)),
  prompt_tokens integer,
  completion_tokens integer,
  total_tokens integer,
  usage_source text not null check (usage_source in ('upstream', 'none')),
  duration_milliseconds integer not null
) strict;

create trigger exchange_audit_keeps_rows before delete on exchange_audit
begin
  select raise(abort, 'audit rows are never deleted');
end;

create trigger exchange_audit_keeps_values before update on exchange_audit
begin
  select raise(abort, 'audit rows are never changed');
end;

create trigger usage_keeps_rows before delete on usage
begin
  select raise(abort, 'usage rows are never deleted');
end;

create trigger usage_keeps_values before update on usage
begin
  select raise(abort, 'usage rows are never changed');
end;
