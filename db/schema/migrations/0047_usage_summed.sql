-- Totals of the ledger that not every commit adds to. Nodes of older programs go on adding what they commit to usage_days and usage_hours,
-- which nothing else reads: a later migration removes both.
create table day_totals (
  key_id text not null references api_keys (id),
  day integer not null,
  requests integer not null,
  prompt_tokens integer not null,
  completion_tokens integer not null,
  total_tokens integer not null,
  cost_nanodollars integer not null,
  primary key (key_id, day)
) strict, without rowid;

create table hour_totals (
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

insert into day_totals (key_id, day, requests, prompt_tokens, completion_tokens, total_tokens, cost_nanodollars)
select key_id, day, requests, prompt_tokens, completion_tokens, total_tokens, cost_nanodollars from usage_days;

insert into hour_totals (hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars)
select hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars from usage_hours;

-- The newest row of the ledger that both include: one row, none before the first request.
create table usage_summed (
  id integer primary key check (id = 1),
  usage_id integer not null
) strict;

insert into usage_summed (id, usage_id) select 1, id from usage order by id desc limit 1;

-- A row leaves the ledger only once the totals have it.
drop trigger usage_keeps_rows;
create trigger usage_keeps_rows before delete on usage when not exists (
  select 1 from archives where kind = 'usage' and state = 'removing'
    and old.id between first_row_id and last_row_id and old.at < before
) or not exists (select 1 from usage_summed where usage_id >= old.id)
begin
  select raise(abort, 'usage rows are never deleted');
end;
