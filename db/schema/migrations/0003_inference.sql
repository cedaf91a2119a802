-- Inference servers. `models` is a JSON array of patterns; the credential is encrypted under the master key.
create table upstreams (
  id text primary key,
  name text not null,
  base_url text not null,
  credential_encrypted text,
  models text not null,
  priority integer not null,
  ca_pem text,
  first_byte_seconds integer not null,
  idle_seconds integer not null,
  created_at integer not null,
  updated_at integer not null,
  deleted_at integer
) strict;

create unique index upstreams_name on upstreams (name) where deleted_at is null;

-- What a million tokens cost, in nanodollars (billionths of a US dollar), by pattern of the model.
create table prices (
  model text primary key,
  prompt_nanodollars integer not null,
  completion_nanodollars integer not null,
  cached_nanodollars integer,
  updated_at integer not null,
  deleted_at integer
) strict;

-- What bounds a key. Money in nanodollars; `allowed_models` is a JSON array of patterns.
alter table api_keys add column expires_at integer;
alter table api_keys add column limit_nanodollars integer;
alter table api_keys add column limit_reset text check (limit_reset in ('daily', 'weekly', 'monthly'));
alter table api_keys add column requests_per_minute integer;
alter table api_keys add column tokens_per_minute integer;
alter table api_keys add column allowed_models text;

alter table usage add column model_asked text;
alter table usage add column upstream text;
alter table usage add column preset_version text;
alter table usage add column cached_tokens integer;
alter table usage add column reasoning_tokens integer;
alter table usage add column cost_nanodollars integer;
alter table usage add column first_byte_milliseconds integer;
alter table usage add column client_left integer not null default 0 check (client_left in (0, 1));

-- The totals of a key by UTC day (days since 1970), committed together with the rows they sum up. Budgets are read from them.
create table usage_days (
  key_id text not null references api_keys (id),
  day integer not null,
  requests integer not null,
  prompt_tokens integer not null,
  completion_tokens integer not null,
  total_tokens integer not null,
  cost_nanodollars integer not null,
  primary key (key_id, day)
) strict, without rowid;

insert into usage_days (key_id, day, requests, prompt_tokens, completion_tokens, total_tokens, cost_nanodollars)
select key_id, at / 86400000, count(*),
  cast(total(min(prompt_tokens, 1000000000)) as integer),
  cast(total(min(completion_tokens, 1000000000)) as integer),
  cast(total(min(total_tokens, 1000000000)) as integer),
  0
from usage group by key_id, at / 86400000;
