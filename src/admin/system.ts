// The admin operation that shows the installation: what runs, with which settings, and how backups and certificates stand. No secret is in it.
import { readSchemaVersion } from '../../db/read/facts.ts'
import { type ListedNode, listNodes } from '../../db/tables/nodes.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { describeSettings } from '../settings/effective-settings.ts'
import { type } from '../values/shape.ts'
import { type BackupContext, showBackup } from './backup.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { timeOf } from './operation/references.ts'

const time = type('string').configure({ format: 'date-time' })
const text = 'string | null'

/** `nodes` is empty for a database file, which has one process; `lag` counts the changes that a node has not seen. `settings` is null where the process does not know their texts, `tls` without TLS. */
export const systemResponse = type({
  version: 'string',
  schema: 'number.integer',
  base_url: text,
  started_at: time,
  now: time,
  organizations: 'number.integer',
  nodes: type({
    name: 'string',
    version: 'string',
    live: 'boolean',
    lag: 'number.integer',
    started_at: time,
    last_seen_at: time,
  }).array(),
  settings: type({ '[string]': text }).or('null'),
  backup: type({
    folder: text,
    every_seconds: 'number | null',
    keep: 'number.integer | null',
    running: 'boolean',
    failing: 'boolean',
    newest_at: time.or('null'),
    last_file: text,
    last_failure_at: time.or('null'),
    last_failure: text,
  }),
  tls: type({ expires_at: time, failure: text }).or('null'),
}).configure({ title: 'System' })

export const systemOperations = { 'system.show': operation(type({ '+': 'reject' }), show) }

async function show(
  context: BackupContext & Needs<'database' | 'orm' | 'registry' | 'baseUrl' | 'settingTexts' | 'tlsState' | 'now'>,
): Promise<typeof systemResponse.infer> {
  const { baseUrl = null, database, now, orm, registry, settingTexts, tlsState } = context
  const texts = settingTexts?.()
  const tls = tlsState?.()
  return {
    version: packageJson.version,
    schema: await readSchemaVersion(database.client),
    base_url: baseUrl,
    started_at: timeOf(Math.round(performance.timeOrigin)),
    now: timeOf(now()),
    organizations: registry.organizations.size,
    nodes: (await listNodes(orm)).map(showNode),
    settings: texts === undefined ? null : describeSettings(texts),
    backup: await showBackup(context),
    tls: tls === undefined ? null : { expires_at: timeOf(tls.expiresAt), failure: tls.failure ?? null },
  }
}

function showNode({ name, version, isLive, lag, startedAt, lastSeenAt }: ListedNode) {
  return { name, version, live: Boolean(isLive), lag, started_at: timeOf(startedAt), last_seen_at: timeOf(lastSeenAt) }
}
