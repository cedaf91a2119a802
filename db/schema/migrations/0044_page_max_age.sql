-- How long ago a person may have signed in at the issuer when the admin page lets them in, and while their session lasts.
alter table issuers add column page_max_age_seconds integer;
