-- When a policy, key, issuer or preset last worked, and when and why it was last refused. Written once a minute.
create table last_uses (
  id text primary key,
  used_at integer,
  refused_at integer,
  refused_reason text
) strict;
