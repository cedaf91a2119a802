-- What was used on a day by inference server and preset, for reports. A schedule adds the rows of the ledger, not their commits
-- (tables/served-totals.ts), and begins with the first row.
create table served_totals (
  day integer not null,
  organization_id text not null,
  upstream text not null,
  workspace_id text not null,
  preset_version text not null,
  requests integer not null,
  prompt_tokens integer not null,
  completion_tokens integer not null,
  total_tokens integer not null,
  cost_nanodollars integer not null,
  requests_without_cost integer not null,
  primary key (day, organization_id, upstream, workspace_id, preset_version)
) strict, without rowid;

-- One row: the newest row of the ledger that they include, and the first day of which all rows were still in the ledger.
create table served_summed (
  id integer primary key check (id = 1),
  usage_id integer not null,
  since_day integer not null
) strict;

insert into served_summed (id, usage_id, since_day)
select 1, 0, coalesce(max(last_at) / 86400000 + 1, 0) from archives where kind = 'usage';
