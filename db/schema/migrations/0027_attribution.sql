-- Whose usage a request is: what a policy makes of a verified token, or a trusted front end sends.
alter table policies add column attribute_to text;
alter table policies add column attribute_environment integer;
alter table api_keys add column labels text;
alter table api_keys add column attribute_from_header text;
alter table exchange_audit add column attribution text;
alter table usage add column attribution text;
-- What callers say of a request. Nothing relies on it.
alter table usage add column end_user text;
alter table usage add column session_id text;
alter table usage add column metadata text;
