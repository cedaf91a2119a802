-- Names of headers that pass to an inference server and back from it, beside those that pass to and from every one: JSON arrays.
alter table upstreams add column forward_headers text not null default '[]';
alter table upstreams add column return_headers text not null default '[]';
