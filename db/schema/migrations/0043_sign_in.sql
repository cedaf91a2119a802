-- Sign-in to the admin page with an issuer: the client as which the page signs people in, and sessions that name issuer and subject.
alter table issuers add column page_client_id text;
alter table issuers add column page_authentication text not null default 'none'
  check (page_authentication in ('none', 'secret', 'private_key_jwt'));
alter table issuers add column page_secret_encrypted text;

-- What a session may do, at most what its key may. Read-only sessions are viewers.
alter table sessions add column role text check (role in ('viewer', 'auditor', 'operator', 'admin'));
update sessions set role = case read_only when 1 then 'viewer'
  else (select role from api_keys where api_keys.id = sessions.key_id) end;
alter table sessions drop column read_only;
alter table sessions add column policy_id text;
alter table sessions add column policy_updated_at integer;
alter table sessions add column issuer_id text;
alter table sessions add column issuer_updated_at integer;
alter table sessions add column issuer_url text;
alter table sessions add column subject text;
alter table sessions add column person text;
alter table sessions add column provider_session text;
alter table sessions add column valid_until integer;

-- Whom an issuer signed in that made a change.
alter table admin_changes add column actor_issuer text;
alter table admin_changes add column actor_subject text;
