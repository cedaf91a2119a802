-- A rotated key has two texts until a time: the hash of the one before, and when it ends (milliseconds since 1970, UTC).
alter table api_keys add column previous_hash text not null default '';
alter table api_keys add column previous_until integer not null default 0;
