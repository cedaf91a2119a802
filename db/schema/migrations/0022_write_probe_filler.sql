-- As many pages as an ordinary commit: what fits for one row says nothing about the next request.
alter table write_probe add column filler blob;
