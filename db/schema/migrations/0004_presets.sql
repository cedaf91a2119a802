-- A preset: a name for a request's settings. Its slug is taken for ever; which of its versions counts is `designated_version`.
create table presets (
  id text primary key,
  organization_id text not null,
  workspace_id text not null,
  slug text not null,
  name text not null,
  description text,
  status text not null check (status in ('active', 'disabled', 'archived')),
  status_updated_at integer,
  creator_id text not null,
  designated_version integer not null,
  latest_version integer not null,
  created_at integer not null,
  updated_at integer not null,
  unique (workspace_id, slug),
  -- Versions are numbered from 1 without a gap. A foreign key would have to wait for the commit, and libSQL does not reset one that fails.
  check (designated_version between 1 and latest_version),
  foreign key (workspace_id, organization_id) references workspaces (id, organization_id),
  foreign key (creator_id, organization_id) references users (id, organization_id)
) strict;

-- What a version says never changes. `config` is a JSON object in the terms of chat completions. Nothing looks for a version by its id,
-- and an index over random ids would cost as much again as the row.
create table preset_versions (
  id text not null,
  preset_id text not null references presets (id),
  version integer not null check (version >= 1),
  config text not null,
  system_prompt text,
  creator_id text not null references users (id),
  created_at integer not null,
  unique (preset_id, version)
) strict;

create trigger preset_versions_keeps_rows before delete on preset_versions
begin
  select raise(abort, 'versions of presets are never deleted');
end;

create trigger preset_versions_keeps_values before update on preset_versions
begin
  select raise(abort, 'versions of presets are never changed');
end;

-- Which presets a key may use, a JSON array of patterns; of a policy also which models. Null is no bound.
alter table api_keys add column allowed_presets text;
alter table policies add column allowed_models text;
alter table policies add column allowed_presets text;
