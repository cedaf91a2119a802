-- Where alerts are sent. `events` is JSON; `credential_encrypted` is the secret that signs.
create table webhooks (
  id text primary key,
  organization_id text not null references organizations (id),
  name text not null,
  enabled integer not null check (enabled in (0, 1)),
  url text not null,
  events text not null,
  credential_encrypted text,
  ca_pem text,
  created_at integer not null,
  updated_at integer not null,
  deleted_at integer,
  managed_by text
) strict;

create unique index webhooks_name on webhooks (organization_id, name) where deleted_at is null;

-- What happened that somebody wants to know. `data` is JSON.
create table alerts (
  id text primary key,
  organization_id text not null references organizations (id),
  type text not null check (type in ('budget.reached', 'finding.opened', 'finding.closed')),
  subject text not null,
  data text not null,
  at integer not null,
  seen_at integer not null,
  ended_at integer,
  needed_until integer
) strict;

create unique index alerts_subject on alerts (organization_id, subject) where ended_at is null;

-- Alerts on their way to webhooks.
create table alert_deliveries (
  alert_id text not null references alerts (id),
  webhook_id text not null references webhooks (id),
  attempts integer not null,
  due_at integer,
  tried_at integer,
  delivered_at integer,
  problem text,
  claim text,
  primary key (alert_id, webhook_id)
) strict, without rowid;

create index alert_deliveries_due on alert_deliveries (webhook_id, due_at) where due_at is not null;

-- Percents of a window at which a budget alerts, as JSON.
alter table budgets add column alerts text not null default '[80,100]';
