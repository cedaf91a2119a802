-- What a management key may do; null for an inference key. Keys that could change everything are admins, and read-only ones are viewers.
alter table api_keys add column role text check (role in ('viewer', 'auditor', 'operator', 'admin'));
update api_keys set role = 'admin' where kind = 'management';
update api_keys set role = 'viewer' where kind = 'management_read_only';
