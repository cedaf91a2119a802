-- Who archives old rows of a server database: one run at a time. `until` is by the clock of the database.
create table archive_lease (
  id integer primary key check (id = 1),
  holder text not null,
  until integer not null
) strict;

-- The host that wrote the file, null in a database file.
alter table archives add column node text;

-- A one-time link to the admin page. The code is not stored, only its SHA-256. Times are by the clock of the database.
create table sign_in_links (
  code_sha256 text primary key,
  key_id text not null references api_keys (id),
  read_only integer not null check (read_only in (0, 1)),
  opened_by text,
  created_at integer not null,
  expires_at integer not null,
  used_at integer
) strict;

create trigger sign_in_links_used_once before update of used_at on sign_in_links when old.used_at is not null
begin
  select raise(abort, 'a sign-in link is used once');
end;

-- What nodes must have in common, and how far their clock is ahead of the database, in milliseconds.
alter table nodes add column base_url text;
alter table nodes add column clock_offset integer;
