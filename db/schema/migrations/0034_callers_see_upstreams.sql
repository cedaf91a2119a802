alter table organizations add column upstream_headers integer not null default 0 check (upstream_headers in (0, 1));
