-- Findings of the linter that an administrator accepts: a JSON array of rules with reasons, null if there are none.
alter table policies add column lint_exceptions text;
