-- How much each node of a server database may use of a budget near its limit. In a database file it stays empty.
create table budget_slices (
  budget_id text not null,
  counter text not null,
  node_id text not null,
  requests integer not null,
  tokens integer not null,
  nanodollars integer not null,
  until integer not null,
  primary key (budget_id, counter, node_id)
) strict, without rowid;
