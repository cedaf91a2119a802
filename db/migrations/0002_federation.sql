-- The meaning of a condition: which engine, options and allow list it was checked under.
alter table policies add column condition_environment integer;
