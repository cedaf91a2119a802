-- A revoked key stays revoked whatever the time: `retired_at` alone would bring it back into use when the clock is set back.
alter table signing_keys add column revoked integer not null default 0 check (revoked in (0, 1));
-- A key that was revoked before ended in the moment in which its replacement was made and began to sign.
update signing_keys set revoked = 1 where exists (
  select 1 from signing_keys as replacement
  where replacement.created_at = signing_keys.retired_at and replacement.active_at = signing_keys.retired_at
);
