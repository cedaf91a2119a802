-- Who ran the command that made a change, as the operating system names them, and who became that user with sudo.
alter table admin_changes add column os_user text;
alter table admin_changes add column sudo_user text;
