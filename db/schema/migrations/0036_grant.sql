-- By which grant of the token endpoint an exchange was requested; null for older rows.
alter table exchange_audit add column grant text check (grant in ('token-exchange', 'jwt-bearer'));
