-- An erasure also empties the ids of access tokens. The tree of a day has no salts: as long as all else of its rows is known, anyone could try
-- subjects until the root fits. With the random id of the token gone, nobody can.

drop trigger exchange_audit_keeps_values;
create trigger exchange_audit_keeps_values before update on exchange_audit
when coalesce(new.subject, new.subject_token_id, new.subject_token_sha256, new.access_token_id, new.client_address, new.recorded_claims,
    new.attribution, new.detail) is not null
  or (new.id, new.at, new.request_id, new.outcome, new.error, new.reason, new.organization_id, new.policy_id, new.issuer_id, new.key_id,
    new.policy_named, new.access_token_expires_at)
  is not (old.id, old.at, old.request_id, old.outcome, old.error, old.reason, old.organization_id, old.policy_id, old.issuer_id, old.key_id,
    old.policy_named, old.access_token_expires_at)
begin
  select raise(abort, 'audit rows are never changed');
end;

drop trigger usage_keeps_values;
create trigger usage_keeps_values before update on usage
when coalesce(new.subject, new.access_token_id, new.attribution, new.end_user, new.session_id, new.metadata) is not null
  or (new.id, new.at, new.request_id, new.organization_id, new.workspace_id, new.key_id, new.policy_id, new.issuer_id,
    new.endpoint, new.model, new.status, new.streamed, new.completed, new.prompt_tokens, new.completion_tokens, new.total_tokens,
    new.usage_source, new.duration_milliseconds, new.model_asked, new.upstream, new.preset_version, new.cached_tokens,
    new.reasoning_tokens, new.cost_nanodollars, new.first_byte_milliseconds, new.client_left, new.estimated, new.unit, new.units,
    new.price, new.attempts, new.error)
  is not (old.id, old.at, old.request_id, old.organization_id, old.workspace_id, old.key_id, old.policy_id, old.issuer_id,
    old.endpoint, old.model, old.status, old.streamed, old.completed, old.prompt_tokens, old.completion_tokens,
    old.total_tokens, old.usage_source, old.duration_milliseconds, old.model_asked, old.upstream, old.preset_version, old.cached_tokens,
    old.reasoning_tokens, old.cost_nanodollars, old.first_byte_milliseconds, old.client_left, old.estimated, old.unit, old.units,
    old.price, old.attempts, old.error)
begin
  select raise(abort, 'usage rows are never changed');
end;
