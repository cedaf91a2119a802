-- The identity of this installation, the nodes that serve a server database, and the commits that it has seen.
create table installation (
  id text primary key
) strict;

insert into installation (id) values (lower(hex(randomblob(16))));

create table nodes (
  id text primary key,
  name text not null,
  version text not null,
  schema_version integer not null,
  started_at integer not null,
  last_seen_at integer not null,
  revision integer not null
) strict;

-- Old ones are removed from the front: numbers and times grow together.
create table batches (
  number integer primary key,
  id text not null unique,
  at integer not null
) strict;
