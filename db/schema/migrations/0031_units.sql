-- Prices for what is not counted in tokens, and the amounts; and which key made a response that an upstream keeps.
alter table prices add column character_nanodollars integer;
alter table prices add column image_nanodollars integer;
alter table prices add column audio_second_nanodollars integer;
-- Not `in` with three words: SQLite would make a table of them for each row, a seventh of its insert.
alter table usage add column unit text check (unit = 'character' or unit = 'image' or unit = 'audio_second');
alter table usage add column units real;
create table stored_responses (
  id integer primary key,
  response_id text not null,
  key_id text not null,
  upstream_id text not null,
  created_at integer not null
) strict;
create unique index stored_responses_response_id on stored_responses (response_id);
