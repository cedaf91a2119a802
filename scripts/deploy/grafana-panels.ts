// The panels of the Grafana dashboard by section: what each shows. It does not know how Grafana writes a panel.
import { each, increase, own, type Panel, panel, quantile, quantiles, rate, rateBy, since } from './grafana-queries.ts'

const ready = { '0': { text: 'not ready', color: 'red' }, '1': { text: 'ready', color: 'green' } }
const readyMappings = { mappings: [{ type: 'value', options: ready }] }

export const sections: Record<string, Panel[]> = {
  Server: [
    { ...panel('Ready', 4, 'short', each('latchkey_ready')), type: 'stat', limits: readyMappings },
    {
      ...panel('Version', 4, 'short', each('latchkey_build_info'), '{{version}}'),
      type: 'stat',
      more: { description: 'The name of the series is the version' },
    },
    { ...panel('Time since start', 4, 's', since('process_start_time_seconds')), type: 'stat' },
    panel('Memory', 6, 'bytes', each('process_resident_memory_bytes')),
    panel('CPU', 6, 'percentunit', rate(each('process_cpu_seconds_total'))),
  ],
  'Token exchanges': [
    panel(
      'Exchanges by outcome',
      8,
      'reqps',
      rateBy('outcome, grant', own('latchkey_exchanges_total')),
      '{{outcome}} {{grant}}',
    ),
    panel(
      'Refused exchanges by reason',
      8,
      'reqps',
      rateBy('reason', own('latchkey_exchanges_total', ', outcome="refused"')),
      '{{reason}}',
    ),
    panel('Duration of an exchange', 8, 's', quantiles('le', own('latchkey_exchange_duration_seconds_bucket'))),
    panel('Age of issuer keys', 8, 's', own('latchkey_issuer_keys_age_seconds'), '{{organization}} {{issuer}}'),
    panel(
      'Time until issuer keys are unusable',
      8,
      's',
      `${own('latchkey_issuer_keys_expire_timestamp_seconds')} - time()`,
      '{{organization}} {{issuer}}',
    ),
    panel(
      'Failed fetches of issuer keys',
      8,
      'short',
      increase(own('latchkey_issuer_fetch_failures_total')),
      '{{organization}} {{issuer}}',
    ),
  ],
  Inference: [
    panel('Requests by status', 8, 'reqps', rateBy('code', own('latchkey_inference_requests_total')), '{{code}}'),
    panel('Requests by model', 8, 'reqps', rateBy('model', own('latchkey_inference_requests_total')), '{{model}}'),
    panel(
      'Requests by upstream',
      8,
      'reqps',
      rateBy('upstream', own('latchkey_inference_requests_total')),
      '{{upstream}}',
    ),
    panel(
      'Time to the first byte',
      8,
      's',
      quantiles('le, endpoint', own('latchkey_inference_first_byte_seconds_bucket'), ' {{endpoint}}'),
    ),
    panel(
      'Duration of a request',
      8,
      's',
      quantiles('le, endpoint', own('latchkey_inference_duration_seconds_bucket'), ' {{endpoint}}'),
    ),
    {
      ...panel('Tokens by kind', 8, 'short', rateBy('kind', own('latchkey_tokens_total')), '{{kind}}'),
      more: { description: 'Tokens per second' },
    },
    {
      ...panel('Upstreams that respond', 8, 'short', each('latchkey_upstream_up'), '{{upstream}}'),
      limits: { min: 0, max: 1 },
    },
    panel('Requests that run and wait', 8, 'short', [
      { expr: each('latchkey_upstream_running'), legend: 'run: {{upstream}}' },
      { expr: each('latchkey_queue_length'), legend: 'wait: {{upstream}}' },
    ]),
    panel('Wait for a place', 8, 's', quantiles('le, class', each('latchkey_queue_wait_seconds_bucket'), ' {{class}}')),
    {
      ...panel('Upstreams that rest', 8, 'short', each('latchkey_upstream_resting'), '{{upstream}}'),
      limits: { min: 0, max: 1 },
    },
    {
      ...panel('Probes of upstreams', 8, 'short', each('latchkey_upstream_probe_up'), '{{upstream}}'),
      limits: { min: 0, max: 1 },
    },
    panel('Failovers by upstream', 8, 'reqps', rate(each('latchkey_upstream_failovers_total')), '{{upstream}}'),
    panel('Requests refused and failed', 8, 'reqps', [
      { expr: rateBy('reason', each('latchkey_refusals_total')), legend: 'refused: {{reason}}' },
      { expr: rateBy('reason', each('latchkey_failures_total')), legend: 'failed: {{reason}}' },
    ]),
  ],
  Cost: [
    panel(
      'Cost per hour by key',
      12,
      'currencyUSD',
      `3600 * ${rateBy('organization, key', own('latchkey_cost_usd_total'))}`,
      '{{organization}} {{key}}',
    ),
    panel(
      'Part of the budget that is spent',
      12,
      'percentunit',
      `${own('latchkey_key_spent_usd')} / ${own('latchkey_key_limit_usd')}`,
      '{{organization}} {{key}}',
    ),
  ],
  'Database and keys': [
    panel('Duration of a commit', 6, 's', quantiles('le', each('latchkey_commit_duration_seconds_bucket'))),
    panel(
      'Rows in a commit',
      6,
      'short',
      `${rate(each('latchkey_commit_rows_sum'))} / ${rate(each('latchkey_commit_rows_count'))}`,
    ),
    panel('Failed commits', 4, 'short', increase(each('latchkey_commit_failures_total'))),
    panel('Write-ahead log', 4, 'bytes', each('latchkey_wal_bytes')),
    panel('Slow read that runs', 8, 's', each('latchkey_database_read_seconds')),
    panel('Age of the checkpoint of the audit log', 8, 's', since('latchkey_audit_checkpoint_timestamp_seconds')),
    panel('Age of the checkpoint that a witness has', 8, 's', since('latchkey_audit_cosigned_timestamp_seconds')),
    panel('Audit log that fails', 8, 'short', each('latchkey_audit_log_failing')),
    panel('Age of the signing key', 4, 's', each('latchkey_signing_key_age_seconds')),
    panel('Age of the newest backup', 12, 's', since('latchkey_backup_last_success_timestamp_seconds')),
    panel('Failed backups', 12, 'short', increase(each('latchkey_backup_failures_total'), '1h')),
    panel('Rows moved to archives', 12, 'short', increase(each('latchkey_archived_rows_total'), '1h'), '{{kind}}'),
    panel('Time since the last archive run', 12, 's', since('latchkey_retention_last_success_timestamp_seconds')),
    panel('Dropped log lines', 12, 'short', increase(each('latchkey_log_lines_dropped_total')), '{{target}}'),
    panel('Looks at the database server', 12, 's', [
      { expr: quantile(0.5, 'le', each('latchkey_look_duration_seconds_bucket')), legend: 'median' },
      { expr: quantile(0.99, 'le', each('latchkey_look_duration_seconds_bucket')), legend: '99 %' },
    ]),
    panel(
      'Admin changes that a node has not seen',
      12,
      'short',
      `scalar(max(latchkey_revision{job="$job"})) - ${each('latchkey_revision')}`,
    ),
    panel('Live nodes', 8, 'short', each('latchkey_live_nodes')),
    {
      ...panel('Servers of the database', 8, 'short', each('latchkey_database_server_up'), '{{server}}'),
      limits: { min: 0, max: 1 },
    },
    {
      ...panel('Leader of the database', 8, 'short', each('latchkey_database_server_leader'), '{{server}}'),
      limits: { min: 0, max: 1 },
    },
    panel('Elections in the database cluster', 8, 'short', increase(each('latchkey_database_leader_changes_total'))),
    panel('Entries that a server lacks', 12, 'short', each('latchkey_database_server_behind_entries'), '{{server}}'),
    panel('Size of the database at each server', 12, 'bytes', each('latchkey_database_server_bytes'), '{{server}}'),
    {
      ...panel('Serves without the database', 8, 'short', each('latchkey_database_grace')),
      limits: { min: 0, max: 1 },
    },
    panel('Usage that waits for the database', 8, 'short', each('latchkey_usage_waiting_rows')),
    panel('Free space', 8, 'bytes', each('latchkey_disk_free_bytes'), '{{disk}}'),
    panel('Open files and connections', 8, 'percentunit', `${each('process_open_fds')} / ${each('process_max_fds')}`),
    panel(
      'Time until the certificate expires',
      8,
      's',
      `${each('latchkey_tls_certificate_expire_timestamp_seconds')} - time()`,
    ),
    panel('Findings of the doctor', 8, 'short', each('latchkey_doctor_findings'), '{{level}}'),
    panel('Issuers whose keys cannot be fetched', 8, 'short', [
      { expr: own('latchkey_issuer_fetch_failures_in_a_row'), legend: '{{issuer}}: failed fetches in a row' },
      { expr: own('latchkey_issuer_keys_usable'), legend: '{{issuer}}: 1 if keys are usable' },
    ]),
    panel('Alerts', 8, 'short', `sum by (type) (${increase(each('latchkey_alerts_total'))})`, '{{type}}'),
    panel(
      'Attempts to deliver alerts',
      8,
      'short',
      `sum by (outcome) (${increase(each('latchkey_webhook_deliveries_total'))})`,
      '{{outcome}}',
    ),
    panel('Scheduled time between backups', 8, 's', each('latchkey_backup_interval_seconds')),
    panel(
      'Time until the signing key is rotated',
      8,
      's',
      `${each('latchkey_signing_key_rotation_due_timestamp_seconds')} - time()`,
    ),
    panel(
      'Responses without usage',
      8,
      'reqps',
      rateBy('upstream, ledger', own('latchkey_inference_missing_usage_total')),
      '{{upstream}}: {{ledger}}',
    ),
  ],
}
