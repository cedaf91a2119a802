-- Sessions of the admin page. The cookie is not stored, only its SHA-256. A session acts as its key in the state that the key had.
create table sessions (
  id text primary key,
  organization_id text not null references organizations (id),
  key_id text not null references api_keys (id),
  key_updated_at integer not null,
  token_sha256 text not null,
  read_only integer not null check (read_only in (0, 1)),
  opened_by text,
  client_address text,
  created_at integer not null,
  used_at integer not null,
  ended_at integer
) strict;

alter table admin_changes add column session_id text;
