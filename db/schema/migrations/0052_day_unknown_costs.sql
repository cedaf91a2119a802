-- How many requests of a day have an unknown cost, so that reports by key and day need not read the totals by hour.
alter table day_totals add column requests_without_cost integer not null default 0;

update day_totals set requests_without_cost = found.requests from (
  select key_id, hour / 24 as day, sum(requests_without_cost) as requests from hour_totals where requests_without_cost > 0 group by 1, 2
) as found
where day_totals.key_id = found.key_id and day_totals.day = found.day;
