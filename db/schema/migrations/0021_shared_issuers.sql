-- Whether strangers can get tokens of the issuer, as an administrator answered. Null: nobody has answered.
alter table issuers add column shared integer check (shared in (0, 1));
