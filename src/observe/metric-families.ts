// Every metric by name, with its labels and its help (manual: monitoring). Names and labels never change their meaning.

export type Family = {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** `organization` comes first and is an organization's id until the text is written; `key` is a key's id. */
  readonly labels: readonly string[]
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[]
}

const secondsOfExchange = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const secondsOfInference = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 600]
const secondsOfCommit = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
const rowsOfCommit = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

/** Labels are separated by spaces. */
function family(type: Family['type'], name: string, help: string, labels = '', buckets?: readonly number[]): Family {
  const named = { name, type, help, labels: labels === '' ? [] : labels.split(' ') }
  return buckets === undefined ? named : { ...named, buckets }
}

function counter(name: string, help: string, labels?: string): Family {
  return family('counter', `latchkey_${name}_total`, help, labels)
}

function gauge(name: string, help: string, labels?: string): Family {
  return family('gauge', `latchkey_${name}`, help, labels)
}

function histogram(name: string, help: string, buckets: readonly number[], labels?: string): Family {
  return family('histogram', `latchkey_${name}`, help, labels, buckets)
}

export const families = {
  exchanges: counter('exchanges', 'Token exchanges by outcome and grant.', 'organization outcome reason grant'),
  exchangeDuration: histogram(
    'exchange_duration_seconds',
    'Duration of a token exchange until its audit record is committed.',
    secondsOfExchange,
    'organization outcome',
  ),
  inferenceRequests: counter(
    'inference_requests',
    'Inference requests that were forwarded, by class of the status code.',
    'organization endpoint model upstream code',
  ),
  inferenceDuration: histogram(
    'inference_duration_seconds',
    'Duration of an inference request until its response ends.',
    secondsOfInference,
    'organization endpoint',
  ),
  inferenceFirstByte: histogram(
    'inference_first_byte_seconds',
    'Time until the first byte of the body of an inference response.',
    secondsOfInference,
    'organization endpoint',
  ),
  tokens: counter('tokens', 'Tokens that upstreams reported.', 'organization kind model key'),
  missingUsage: counter(
    'inference_missing_usage',
    'Responses (2xx) without the usage of the upstream, by what the ledger has instead.',
    'organization endpoint upstream ledger',
  ),
  cost: counter('cost_usd', 'Cost of inference in US dollars.', 'organization key'),
  keyLimit: gauge('key_limit_usd', 'Budget of a key in US dollars.', 'organization key'),
  keySpent: gauge('key_spent_usd', 'Spending of a key in the period of its budget.', 'organization key'),
  refusals: counter('refusals', 'Requests that Latchkey refused (4xx), except exchanges.', 'reason'),
  failures: counter('failures', 'Requests that failed in Latchkey or for lack of an upstream (5xx).', 'reason'),
  upstreamUp: gauge('upstream_up', '1 if the last request to the upstream got a usable response.', 'upstream'),
  upstreamFailovers: counter('upstream_failovers', 'Failed attempts after which another was made.', 'upstream'),
  upstreamProbe: gauge('upstream_probe_up', '1 if the last probe of the upstream succeeded, else 0.', 'upstream'),
  upstreamResting: gauge('upstream_resting', '1 while requests avoid the upstream after failures, else 0.', 'upstream'),
  upstreamRunning: gauge('upstream_running', 'Requests that run at the upstream at this node.', 'upstream'),
  queueLength: gauge('queue_length', 'Requests that wait for a place at the upstream at this node.', 'upstream'),
  queueWait: histogram(
    'queue_wait_seconds',
    'How long requests waited that got a place at an upstream.',
    secondsOfInference,
    'upstream class',
  ),
  issuerKeysAge: gauge('issuer_keys_age_seconds', 'Age of the fetched keys of an issuer.', 'organization issuer'),
  issuerKeysExpire: gauge(
    'issuer_keys_expire_timestamp_seconds',
    'When the keys of an issuer stop being usable.',
    'organization issuer',
  ),
  issuerFetchFailures: counter(
    'issuer_fetch_failures',
    'Failed fetches of the keys of an issuer.',
    'organization issuer',
  ),
  issuerFetchFailuresInARow: gauge(
    'issuer_fetch_failures_in_a_row',
    'Failed fetches of the keys of an issuer since the last successful one.',
    'organization issuer',
  ),
  issuerKeysUsable: gauge(
    'issuer_keys_usable',
    '0 if fetches failed and no usable keys of the issuer are left, else 1.',
    'organization issuer',
  ),
  refreshDuration: histogram(
    'look_duration_seconds',
    'Duration of a refresh from the database server, on which requests wait.',
    secondsOfCommit,
  ),
  revision: gauge('revision', 'Newest admin change that this node of a server database obeys.'),
  liveNodes: gauge('live_nodes', 'Nodes that serve the same database server.'),
  databaseServerUp: gauge(
    'database_server_up',
    '1 if a server of the database cluster responds and belongs to it.',
    'server',
  ),
  databaseServerLeads: gauge('database_server_leader', '1 for the server of the cluster that leads.', 'server'),
  databaseServerBehind: gauge(
    'database_server_behind_entries',
    'Entries of the log that a server has not applied, of those that its leader has committed.',
    'server',
  ),
  databaseServerBytes: gauge('database_server_bytes', 'What a server of the cluster keeps on its disk.', 'server'),
  leaderChanges: counter('database_leader_changes', 'Elections in the database cluster, as this node has seen them.'),
  graceUsed: gauge('database_grace', '1 while inference is served without the database (LATCHKEY_DATABASE_GRACE).'),
  usageWaiting: gauge('usage_waiting_rows', 'Requests whose usage waits on the disk for the database.'),
  commitDuration: histogram('commit_duration_seconds', 'Duration of a database commit.', secondsOfCommit),
  commitRows: histogram('commit_rows', 'Rows or statements that shared a database commit.', rowsOfCommit),
  commitFailures: counter('commit_failures', 'Database commits that failed.'),
  logLinesDropped: counter('log_lines_dropped', 'Log lines that could not be written in time.', 'target'),
  walBytes: gauge('wal_bytes', 'Size of the write-ahead log of the database.'),
  databaseRead: gauge(
    'database_read_seconds',
    'How long the slow read of the database that runs has taken; 0 without one.',
  ),
  diskFree: gauge('disk_free_bytes', 'Free space of a disk: of the data, the backups or the archives.', 'disk'),
  archivedRows: counter('archived_rows', 'Rows that were moved to archives.', 'kind'),
  retentionLastSuccess: gauge(
    'retention_last_success_timestamp_seconds',
    'When the last scheduled archive run succeeded.',
  ),
  signingKeyAge: gauge('signing_key_age_seconds', 'Time since the signing key took over.'),
  signingKeyRotationDue: gauge(
    'signing_key_rotation_due_timestamp_seconds',
    'When the signing key is due for its scheduled rotation.',
  ),
  tlsExpires: gauge('tls_certificate_expire_timestamp_seconds', 'When the TLS certificate of the server expires.'),
  alerts: counter('alerts', 'Alerts that happened, by type.', 'type'),
  webhookDeliveries: counter('webhook_deliveries', 'Attempts to deliver an alert to a webhook.', 'outcome'),
  doctorFindings: gauge('doctor_findings', 'What the doctor found at its last examination.', 'level'),
  backupLastSuccess: gauge('backup_last_success_timestamp_seconds', 'When the newest backup was made.'),
  backupInterval: gauge('backup_interval_seconds', 'How often backups are scheduled.'),
  backupFailures: counter('backup_failures', 'Backups that failed.'),
  auditCheckpoint: gauge(
    'audit_checkpoint_timestamp_seconds',
    'When the audit log was last found complete and signed.',
  ),
  auditCosigned: gauge(
    'audit_cosigned_timestamp_seconds',
    'When the newest checkpoint was signed that a witness has signed too.',
  ),
  auditFailing: gauge('audit_log_failing', '1 if the audit log could not be signed or published the last time.'),
  ready: gauge('ready', '1 if /readyz responds with 200.'),
  buildInfo: gauge('build_info', 'Version of Latchkey and of Bun; always 1.', 'version bun'),
  residentMemory: family('gauge', 'process_resident_memory_bytes', 'Resident memory of the process.'),
  openFiles: family('gauge', 'process_open_fds', 'Open files and connections of the process.'),
  openFilesMax: family('gauge', 'process_max_fds', 'Most files and connections that the process may open.'),
  cpu: family('counter', 'process_cpu_seconds_total', 'User and system time of the process.'),
  startTime: family('gauge', 'process_start_time_seconds', 'When the process started.'),
} satisfies Record<string, Family>

export type FamilyName = keyof typeof families
