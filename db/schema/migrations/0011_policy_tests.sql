-- Cases that a policy must decide as stated: a JSON array of claims and expected outcomes, null if there are none.
alter table policies add column tests text;

-- The engine that last ran these cases. Another one runs them again when the server starts.
create table policy_test_runs (
  id integer primary key check (id = 1),
  engine text not null,
  at integer not null
) strict;
