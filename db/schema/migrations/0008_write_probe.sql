-- One row that a health check rewrites: only a commit shows whether the disk takes one.
create table write_probe (
  id integer primary key check (id = 1),
  at integer not null
) strict;
