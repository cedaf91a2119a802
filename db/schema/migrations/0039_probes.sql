-- How the health of an inference server is asked for, and what it is told of the order of requests.
alter table upstreams add column probe_path text;
alter table upstreams add column probe_seconds integer not null default 5 check (probe_seconds > 0);
alter table upstreams add column send_priority integer not null default 0 check (send_priority in (0, 1));
alter table upstreams add column send_fairness_id integer not null default 0 check (send_fairness_id in (0, 1));
-- How many requests of each counter of a budget run at once.
alter table budgets add column concurrent_requests integer check (concurrent_requests > 0);
