-- What a policy is for, in words.
alter table policies add column description text;
