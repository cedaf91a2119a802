-- Entries of the audit log can go once an archive has their rows and salts: whole tiles of 256, whose hash stays.

create table log_records_next (
  id integer primary key,
  at integer not null,
  kind text not null check (kind in ('start', 'usage_day', 'key', 'restore', 'erasure', 'pruning')),
  body text not null
) strict;
insert into log_records_next (id, at, kind, body) select id, at, kind, body from log_records;
drop table log_records;
alter table log_records_next rename to log_records;

create trigger log_records_keep_rows before delete on log_records
begin
  select raise(abort, 'log records are never deleted');
end;

create trigger log_records_keep_values before update on log_records
begin
  select raise(abort, 'log records are never changed');
end;

-- Ranges of leaves whose entries go. The log has a record of each.
create table log_pruned (
  first_leaf integer primary key check (first_leaf >= 0 and first_leaf % 256 = 0),
  end_leaf integer not null check (end_leaf > first_leaf and end_leaf % 256 = 0),
  archive_id integer not null references archives (id)
) strict;

-- When the entries of an archive were looked at: those that could go are gone.
alter table archives add column pruned_at integer;

-- Proofs need the hashes of these tiles, and the newest leaf says how many there are. A copy of a database has no identity until it is
-- complete, and brings its rows in the order of the tables.
create trigger log_pruned_has_hashes before insert on log_pruned
when exists (select 1 from installation) and (
  (select count(*) from log_nodes where level = 1 and number >= new.first_leaf / 256 and number < new.end_leaf / 256)
    <> (new.end_leaf - new.first_leaf) / 256
  or new.end_leaf > (select max(leaf) from log_entries)
  or not exists (select 1 from archives where id = new.archive_id and kind = 'exchanges' and state = 'finished')
)
begin
  select raise(abort, 'entries without the hash of their tile are never pruned');
end;

create trigger log_pruned_keeps_rows before delete on log_pruned
begin
  select raise(abort, 'pruned entries are never forgotten');
end;

create trigger log_pruned_keeps_values before update on log_pruned
begin
  select raise(abort, 'pruned entries are never forgotten');
end;

-- An entry goes only if it is in such a range, and nothing here could open it: its row and its salt are gone.
drop trigger log_entries_keep_rows;
create trigger log_entries_keep_rows before delete on log_entries
when old.kind <> 1 or old.salt is not null or exists (select 1 from exchange_audit where id = old.ref)
  or old.leaf >= coalesce((select end_leaf from log_pruned where first_leaf <= old.leaf order by first_leaf desc limit 1), 0)
begin
  select raise(abort, 'log entries are never deleted');
end;

create trigger log_nodes_keep_rows before delete on log_nodes
begin
  select raise(abort, 'hashes of tiles are never deleted');
end;

create trigger log_nodes_keep_values before update on log_nodes
begin
  select raise(abort, 'hashes of tiles are never changed');
end;

-- The archives of a copied database are verified already.
drop trigger archives_begin_unverified;
create trigger archives_begin_unverified before insert on archives
when new.state <> 'writing' and exists (select 1 from installation)
begin
  select raise(abort, 'an archive begins before its file is verified');
end;
