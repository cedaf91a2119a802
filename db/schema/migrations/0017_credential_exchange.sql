-- How the server gets the credential of an upstream: by exchanging a token from a file.
alter table upstreams add column credential_exchange text;
