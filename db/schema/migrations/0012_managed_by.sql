-- The owner of a configuration document that an object was made from; null if it was made by hand.
alter table issuers add column managed_by text;
alter table api_keys add column managed_by text;
alter table policies add column managed_by text;
alter table presets add column managed_by text;
alter table upstreams add column managed_by text;
alter table prices add column managed_by text;
