-- The meaning of a condition: which engine, options and allow list it was checked under.
alter table policies add column condition_environment integer;
alter table policies add column replay_protection integer not null default 0 check (replay_protection in (0, 1));

-- How long a token of the issuer may live at the most, in seconds from iat to exp.
alter table issuers add column max_token_age_seconds integer;
-- Certificates to trust instead of the public ones when fetching, and how long a set that cannot be renewed stays usable.
alter table issuers add column ca_pem text;
alter table issuers add column keys_stale_seconds integer not null default 86400;

-- Subject tokens that were exchanged under a policy with replay protection, until they expire. The id is hashed: it is any text.
create table used_subject_tokens (
  issuer_id text not null references issuers (id),
  token_id_sha256 text not null,
  expires_at integer not null,
  primary key (issuer_id, token_id_sha256)
) strict, without rowid;

-- Every change that an admin made: who, what, and the row before and after it.
create table admin_changes (
  id integer primary key,
  at integer not null,
  actor text not null check (actor in ('local', 'key', 'server')),
  actor_key_id text,
  request_id text,
  operation text not null,
  organization_id text,
  kind text not null,
  target_id text not null,
  before text,
  after text
) strict;

create trigger admin_changes_keeps_rows before delete on admin_changes
begin
  select raise(abort, 'audit rows are never deleted');
end;

create trigger admin_changes_keeps_values before update on admin_changes
begin
  select raise(abort, 'audit rows are never changed');
end;
