-- The transparent audit log: a Merkle tree whose leaves commit to rows of exchange_audit, admin_changes and log_records.

-- What leaves commit to that is in no other table.
create table log_records (
  id integer primary key,
  at integer not null,
  kind text not null check (kind in ('start', 'usage_day', 'key', 'restore', 'erasure')),
  body text not null
) strict;

-- A leaf: its number in the tree, the row that it covers, and its commitment: the SHA-256 of the salt and the text of the row.
-- Without the salt, nobody can test whether a row is the one that was committed to.
create table log_entries (
  leaf integer primary key,
  kind integer not null,
  ref integer not null,
  at integer not null,
  salt blob,
  commitment blob not null
) strict;

-- The hashes of whole tiles: of 256 leaves (level 1), of 256 such hashes (level 2), and so on.
create table log_nodes (
  level integer not null,
  number integer not null,
  hash blob not null,
  primary key (level, number)
) strict;

-- The newest row of a table that has a leaf. Rows get theirs in the order of their ids.
create table log_positions (
  source text primary key check (source in ('exchanges', 'changes', 'records')),
  ref integer not null
) strict;

-- The names of the log. A new one begins when the database has gone back to an older state.
create table log_epochs (
  number integer primary key,
  name text not null unique,
  began_at integer not null
) strict;

create table log_checkpoints (
  epoch text not null,
  size integer not null,
  at integer not null,
  note text not null,
  primary key (epoch, size)
) strict;

create table audit_keys (
  id text primary key,
  public_key text not null,
  private_key_encrypted text not null,
  created_at integer not null,
  retired_at integer
) strict;

create trigger log_records_keep_rows before delete on log_records
begin
  select raise(abort, 'log records are never deleted');
end;

create trigger log_records_keep_values before update on log_records
begin
  select raise(abort, 'log records are never changed');
end;

create trigger log_entries_keep_rows before delete on log_entries
begin
  select raise(abort, 'log entries are never deleted');
end;

-- A salt can go, and nothing else.
create trigger log_entries_keep_values before update on log_entries
when new.salt is not null or (new.leaf, new.kind, new.ref, new.at, new.commitment) is not (old.leaf, old.kind, old.ref, old.at, old.commitment)
begin
  select raise(abort, 'log entries are never changed');
end;

create trigger log_checkpoints_keep_rows before delete on log_checkpoints
begin
  select raise(abort, 'checkpoints are never deleted');
end;
