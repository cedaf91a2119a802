-- Who may sign bundles of issuer keys, and the newest bundle of each of their keys. A key that is added again keeps its sequences.
create table bundle_signers (
  id text primary key,
  organization_id text not null references organizations (id),
  name text not null,
  algorithm text not null check (algorithm in ('EdDSA', 'ES256')),
  key_id text not null,
  public_jwk text not null,
  created_at integer not null,
  updated_at integer not null,
  deleted_at integer
) strict;

create unique index bundle_signers_name on bundle_signers (organization_id, name) where deleted_at is null;
create unique index bundle_signers_key_id on bundle_signers (organization_id, key_id) where deleted_at is null;

create table bundle_sequences (
  organization_id text not null references organizations (id),
  key_id text not null,
  issuer_url text not null,
  sequence integer not null,
  imported_at integer not null,
  primary key (organization_id, key_id, issuer_url)
) strict, without rowid;

-- The signer whose bundles alone change the keys, when pasted keys expire, and the bundle that they came from.
alter table issuers add column bundle_signer_id text references bundle_signers (id);
alter table issuers add column keys_expire_at integer;
alter table issuers add column key_bundle text;
