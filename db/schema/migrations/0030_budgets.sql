-- What may be spent, by whom and in which time. `applies_to`, `windows`, `overrides` and `top_ups` are JSON.
create table budgets (
  id text primary key,
  organization_id text not null references organizations (id),
  name text not null,
  enabled integer not null check (enabled in (0, 1)),
  applies_to text,
  each text,
  windows text not null,
  overrides text,
  top_ups text,
  mode text not null check (mode in ('block', 'warn')),
  unpriced text not null check (unpriced in ('count', 'refuse')),
  created_at integer not null,
  updated_at integer not null,
  deleted_at integer,
  managed_by text
) strict;

create unique index budgets_name on budgets (organization_id, name) where deleted_at is null;

-- The zone in which days, weeks and months of budgets begin. Null: UTC.
alter table organizations add column time_zone text;
-- Whether responses have headers with what remains of budgets.
alter table organizations add column budget_headers integer not null default 0 check (budget_headers in (0, 1));

-- What was used in each hour since 1970, written with the ledger. Empty texts stand for nulls. Budgets are read from it.
create table usage_hours (
  hour integer not null,
  key_id text not null,
  policy_id text not null,
  attribution text not null,
  model text not null,
  requests integer not null,
  total_tokens integer not null,
  cost_nanodollars integer not null,
  primary key (hour, key_id, policy_id, attribution, model)
) strict, without rowid;

insert into usage_hours
select at / 3600000, key_id, coalesce(policy_id, ''), coalesce(attribution, ''), coalesce(model, ''),
  count(*), coalesce(sum(min(total_tokens, 1000000000)), 0), cast(min(total(cost_nanodollars), 9007199254740991) as integer)
from usage group by 1, 2, 3, 4, 5;
