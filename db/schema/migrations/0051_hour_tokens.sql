-- Prompt and completion tokens of an hour, so that reports by policy, model and attribution are read from totals. Null where nobody has added
-- them up, which more requests do not change: an hour of which some requests are before the newest million, or archived.
alter table hour_totals add column prompt_tokens integer;
alter table hour_totals add column completion_tokens integer;

update hour_totals set prompt_tokens = found.prompt_tokens, completion_tokens = found.completion_tokens from (
  select at / 3600000 as hour, key_id, coalesce(policy_id, '') as policy_id, coalesce(attribution, '') as attribution,
    coalesce(model, '') as model, count(*) as requests,
    cast(min(total(prompt_tokens), 9007199254740991) as integer) as prompt_tokens,
    cast(min(total(completion_tokens), 9007199254740991) as integer) as completion_tokens
  from usage where id > (select max(id) - 1000000 from usage) and id <= (select usage_id from usage_summed)
  group by 1, 2, 3, 4, 5) as found
where hour_totals.hour = found.hour and hour_totals.key_id = found.key_id and hour_totals.policy_id = found.policy_id
  and hour_totals.attribution = found.attribution and hour_totals.model = found.model and hour_totals.requests = found.requests;
