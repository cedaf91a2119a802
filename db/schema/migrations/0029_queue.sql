-- How many requests an inference server runs at once, and how equal servers share them.
alter table upstreams add column max_running integer check (max_running > 0);
alter table upstreams add column weight integer not null default 1 check (weight > 0);
alter table upstreams add column affinity text not null default 'none' check (affinity in ('none', 'session', 'prefix'));
-- How many requests of a key run at once, and whose turn it is where requests wait.
alter table api_keys add column concurrent_requests integer check (concurrent_requests > 0);
alter table api_keys add column queue_class text not null default 'normal' check (queue_class in ('interactive', 'normal', 'batch'));
alter table api_keys add column queue_weight integer not null default 1 check (queue_weight > 0);
alter table api_keys add column queue_seconds integer not null default 30 check (queue_seconds >= 0);
alter table api_keys add column fair_by text not null default 'key' check (fair_by in ('key', 'attribution'));
