-- The document that was last applied for an owner, or without one: its SHA-256 and revision as the caller gave them, and whether the
-- objects of the owner are locked against edits by hand.
create table config_documents (
  id text primary key,
  organization_id text not null references organizations (id),
  owner text,
  locked integer not null check (locked in (0, 1)),
  sha256 text,
  revision text,
  created_at integer not null,
  updated_at integer not null
) strict;
create unique index config_documents_owner on config_documents (organization_id, coalesce(owner, ''));

-- Records of one commit that belong together, such as those of one document.
alter table admin_changes add column group_id text;
