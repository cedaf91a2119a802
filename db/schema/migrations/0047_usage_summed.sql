-- The newest row of the ledger that the totals by day and by hour include: one row, none before the first request. Until now each commit of
-- the ledger wrote both totals, so they include all rows.
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
