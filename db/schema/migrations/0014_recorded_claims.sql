-- What the audit keeps of the claims of a verified token, and the claims themselves as a JSON object; null if none are kept.
alter table organizations add column record_claims text not null default 'selected'
  check (record_claims in ('off', 'hashed', 'selected', 'all'));
alter table exchange_audit add column recorded_claims text;
