-- Last uses are recorded since migration 13. What was used before looked unused, although audit and ledger know it.
insert into last_uses (id, used_at)
select id, max(at) from (
  select policy_id as id, max(at) as at from exchange_audit where outcome = 'issued' group by 1
  union all select issuer_id, max(at) from exchange_audit where outcome = 'issued' group by 1
  union all select key_id, max(at) from exchange_audit where outcome = 'issued' group by 1
  union all select key_id, max(at) from usage group by 1
  union all select presets.id, max(usage.at) from usage join presets on presets.workspace_id = usage.workspace_id
    and presets.slug = substr(usage.preset_version, 1, instr(usage.preset_version, '@') - 1) group by 1
)
where id in (
  select id from policies where deleted_at is null
  union all select id from issuers where deleted_at is null
  union all select id from api_keys where deleted_at is null
  union all select id from presets
)
group by id
on conflict (id) do update set used_at = max(coalesce(last_uses.used_at, 0), excluded.used_at);
