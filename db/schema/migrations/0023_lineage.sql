-- A random id that a program gives its change, so that nodes notice when the database has gone back and forward again.
-- Null for changes of older programs.
alter table admin_changes add column lineage text;
