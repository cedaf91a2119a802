-- Files that hold old rows of exchange_audit and usage. `before` is a time: a file holds the rows of its range that are older.
-- A file is 'writing' until it has been read back and compared, 'verified' while its rows leave the table, then 'finished'.
-- An archive is 'removing' only within a transaction that deletes rows of it (db/tables/archives.ts).
create table archives (
  id integer primary key,
  kind text not null check (kind in ('exchanges', 'usage')),
  state text not null check (state in ('writing', 'verified', 'removing', 'finished')),
  folder text not null,
  file text not null unique,
  first_row_id integer not null,
  last_row_id integer not null,
  before integer not null,
  first_at integer not null,
  last_at integer not null,
  row_count integer not null check (row_count > 0),
  organizations text not null,
  bytes integer,
  sha256 text check (length(sha256) = 64),
  created_at integer not null,
  finished_at integer,
  check (state = 'writing' or (sha256 is not null and bytes is not null))
) strict;

create unique index archives_removing on archives (kind) where state = 'removing';

create trigger archives_begin_unverified before insert on archives when new.state <> 'writing'
begin
  select raise(abort, 'an archive begins before its file is verified');
end;

create trigger archives_keeps_rows before delete on archives
begin
  select raise(abort, 'archives are never forgotten');
end;

-- A verified file belongs to its rows for good, and only a verified one lets rows go.
create trigger archives_keeps_values
before update of id, kind, folder, file, first_row_id, last_row_id, before, first_at, last_at, row_count, organizations, bytes, sha256
on archives when old.state <> 'writing'
begin
  select raise(abort, 'verified archives are never changed');
end;

create trigger archives_keeps_order before update of state on archives
when (old.state, new.state) not in (values ('writing', 'writing'), ('writing', 'verified'), ('verified', 'removing'),
  ('removing', 'verified'), ('verified', 'finished'))
begin
  select raise(abort, 'the states of an archive have an order');
end;

-- From now on a row can be deleted while it is in a verified file whose archive is 'removing', and never otherwise.
drop trigger exchange_audit_keeps_rows;
drop trigger usage_keeps_rows;

create trigger exchange_audit_keeps_rows before delete on exchange_audit when not exists (
  select 1 from archives where kind = 'exchanges' and state = 'removing'
    and old.id between first_row_id and last_row_id and old.at < before
)
begin
  select raise(abort, 'audit rows are never deleted');
end;

create trigger usage_keeps_rows before delete on usage when not exists (
  select 1 from archives where kind = 'usage' and state = 'removing'
    and old.id between first_row_id and last_row_id and old.at < before
)
begin
  select raise(abort, 'usage rows are never deleted');
end;
