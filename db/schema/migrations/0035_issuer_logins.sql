-- As which client of the issuer people sign in with `latchkey login`. Without a client, the issuer offers no login.
alter table issuers add column login_client_id text;
alter table issuers add column login_scopes text;
alter table issuers add column login_redirect_uri text;
