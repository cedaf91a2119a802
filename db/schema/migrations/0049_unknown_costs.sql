-- How many requests of an hour have an unknown cost, so that budgets in dollars can say what they do not count. Requests before the
-- newest million stay at zero: an old ledger can be very long, and only budgets for a whole life would read them.
alter table hour_totals add column requests_without_cost integer not null default 0;

update hour_totals set requests_without_cost = found.requests from (
  select at / 3600000 as hour, key_id, coalesce(policy_id, '') as policy_id, coalesce(attribution, '') as attribution,
    coalesce(model, '') as model, count(*) as requests
  from usage where id > (select max(id) - 1000000 from usage) and id <= (select usage_id from usage_summed)
    and cost_nanodollars is null and status < 400
    and endpoint not in ('/messages/count_tokens', '/tokenize', '/detokenize', '/responses/{response}', '/responses/{response}/cancel',
      '/responses/{response}/input_items')
  group by 1, 2, 3, 4, 5) as found
where hour_totals.hour = found.hour and hour_totals.key_id = found.key_id and hour_totals.policy_id = found.policy_id
  and hour_totals.attribution = found.attribution and hour_totals.model = found.model;
