-- Whether the completion tokens of a request are an estimate: its stream did not end, and its content was counted.
alter table usage add column estimated integer not null default 0 check (estimated in (0, 1));
