// The migrations that ship inside the program, in order. Add a migration as a new file and a new line here; never
// change an existing one.
import type { Client } from '@libsql/core/api'
import start from './migrations/0001_start.sql' with { type: 'text' }
import federation from './migrations/0002_federation.sql' with { type: 'text' }
import inference from './migrations/0003_inference.sql' with { type: 'text' }
import presets from './migrations/0004_presets.sql' with { type: 'text' }
import revokedSigningKeys from './migrations/0005_revoked_signing_keys.sql' with { type: 'text' }
import upstreamHeaders from './migrations/0006_upstream_headers.sql' with { type: 'text' }
import localUsers from './migrations/0007_local_users.sql' with { type: 'text' }
import writeProbe from './migrations/0008_write_probe.sql' with { type: 'text' }
import archives from './migrations/0009_archives.sql' with { type: 'text' }
import lintExceptions from './migrations/0010_lint_exceptions.sql' with { type: 'text' }
import policyTests from './migrations/0011_policy_tests.sql' with { type: 'text' }
import managedBy from './migrations/0012_managed_by.sql' with { type: 'text' }
import lastUses from './migrations/0013_last_uses.sql' with { type: 'text' }
import recordedClaims from './migrations/0014_recorded_claims.sql' with { type: 'text' }
import configDocuments from './migrations/0015_config_documents.sql' with { type: 'text' }
import keyBundles from './migrations/0016_key_bundles.sql' with { type: 'text' }
import credentialExchange from './migrations/0017_credential_exchange.sql' with { type: 'text' }
import nodes from './migrations/0018_nodes.sql' with { type: 'text' }
import sessions from './migrations/0019_sessions.sql' with { type: 'text' }
import betweenNodes from './migrations/0020_between_nodes.sql' with { type: 'text' }
import sharedIssuers from './migrations/0021_shared_issuers.sql' with { type: 'text' }
import writeProbeFiller from './migrations/0022_write_probe_filler.sql' with { type: 'text' }
import lineage from './migrations/0023_lineage.sql' with { type: 'text' }
import estimatedUsage from './migrations/0024_estimated_usage.sql' with { type: 'text' }
import lastUsesBefore from './migrations/0025_last_uses_before.sql' with { type: 'text' }
import policyDescription from './migrations/0026_policy_description.sql' with { type: 'text' }
import attribution from './migrations/0027_attribution.sql' with { type: 'text' }
import auditLog from './migrations/0028_audit_log.sql' with { type: 'text' }
import queue from './migrations/0029_queue.sql' with { type: 'text' }
import budgets from './migrations/0030_budgets.sql' with { type: 'text' }
import units from './migrations/0031_units.sql' with { type: 'text' }
import roles from './migrations/0032_roles.sql' with { type: 'text' }
import budgetHolds from './migrations/0033_budget_holds.sql' with { type: 'text' }
import callersSeeUpstreams from './migrations/0034_callers_see_upstreams.sql' with { type: 'text' }
import issuerLogins from './migrations/0035_issuer_logins.sql' with { type: 'text' }
import exchangeGrant from './migrations/0036_grant.sql' with { type: 'text' }
import keyRotation from './migrations/0037_key_rotation.sql' with { type: 'text' }
import erasure from './migrations/0038_erasure.sql' with { type: 'text' }
import probes from './migrations/0039_probes.sql' with { type: 'text' }
import budgetSlices from './migrations/0040_budget_slices.sql' with { type: 'text' }
import priceVersions from './migrations/0041_price_versions.sql' with { type: 'text' }
import alerts from './migrations/0042_alerts.sql' with { type: 'text' }
import signIn from './migrations/0043_sign_in.sql' with { type: 'text' }
import pageMaxAge from './migrations/0044_page_max_age.sql' with { type: 'text' }
import pruning from './migrations/0045_pruning.sql' with { type: 'text' }
import requestOutcomes from './migrations/0046_request_outcomes.sql' with { type: 'text' }
import usageSummed from './migrations/0047_usage_summed.sql' with { type: 'text' }
import unknownCosts from './migrations/0049_unknown_costs.sql' with { type: 'text' }
import eraseTokenIds from './migrations/0050_erase_token_ids.sql' with { type: 'text' }
import hourTokens from './migrations/0051_hour_tokens.sql' with { type: 'text' }
import dayUnknownCosts from './migrations/0052_day_unknown_costs.sql' with { type: 'text' }
import servedTotals from './migrations/0053_served_totals.sql' with { type: 'text' }

export type Migration = { version: number; name: string; statements: string[] }

export const migrations: Migration[] = [
  { version: 1, name: 'start', statements: statementsOf(start) },
  { version: 2, name: 'federation', statements: statementsOf(federation) },
  { version: 3, name: 'inference', statements: statementsOf(inference) },
  { version: 4, name: 'presets', statements: statementsOf(presets) },
  { version: 5, name: 'revoked_signing_keys', statements: statementsOf(revokedSigningKeys) },
  { version: 6, name: 'upstream_headers', statements: statementsOf(upstreamHeaders) },
  { version: 7, name: 'local_users', statements: statementsOf(localUsers) },
  { version: 8, name: 'write_probe', statements: statementsOf(writeProbe) },
  { version: 9, name: 'archives', statements: statementsOf(archives) },
  { version: 10, name: 'lint_exceptions', statements: statementsOf(lintExceptions) },
  { version: 11, name: 'policy_tests', statements: statementsOf(policyTests) },
  { version: 12, name: 'managed_by', statements: statementsOf(managedBy) },
  { version: 13, name: 'last_uses', statements: statementsOf(lastUses) },
  { version: 14, name: 'recorded_claims', statements: statementsOf(recordedClaims) },
  { version: 15, name: 'config_documents', statements: statementsOf(configDocuments) },
  { version: 16, name: 'key_bundles', statements: statementsOf(keyBundles) },
  { version: 17, name: 'credential_exchange', statements: statementsOf(credentialExchange) },
  { version: 18, name: 'nodes', statements: statementsOf(nodes) },
  { version: 19, name: 'sessions', statements: statementsOf(sessions) },
  { version: 20, name: 'between_nodes', statements: statementsOf(betweenNodes) },
  { version: 21, name: 'shared_issuers', statements: statementsOf(sharedIssuers) },
  { version: 22, name: 'write_probe_filler', statements: statementsOf(writeProbeFiller) },
  { version: 23, name: 'lineage', statements: statementsOf(lineage) },
  { version: 24, name: 'estimated_usage', statements: statementsOf(estimatedUsage) },
  { version: 25, name: 'last_uses_before', statements: statementsOf(lastUsesBefore) },
  { version: 26, name: 'policy_description', statements: statementsOf(policyDescription) },
  { version: 27, name: 'attribution', statements: statementsOf(attribution) },
  { version: 28, name: 'audit_log', statements: statementsOf(auditLog) },
  { version: 29, name: 'queue', statements: statementsOf(queue) },
  { version: 30, name: 'budgets', statements: statementsOf(budgets) },
  { version: 31, name: 'units', statements: statementsOf(units) },
  { version: 32, name: 'roles', statements: statementsOf(roles) },
  { version: 33, name: 'budget_holds', statements: statementsOf(budgetHolds) },
  { version: 34, name: 'callers_see_upstreams', statements: statementsOf(callersSeeUpstreams) },
  { version: 35, name: 'issuer_logins', statements: statementsOf(issuerLogins) },
  { version: 36, name: 'grant', statements: statementsOf(exchangeGrant) },
  { version: 37, name: 'key_rotation', statements: statementsOf(keyRotation) },
  { version: 38, name: 'erasure', statements: statementsOf(erasure) },
  { version: 39, name: 'probes', statements: statementsOf(probes) },
  { version: 40, name: 'budget_slices', statements: statementsOf(budgetSlices) },
  { version: 41, name: 'price_versions', statements: statementsOf(priceVersions) },
  { version: 42, name: 'alerts', statements: statementsOf(alerts) },
  { version: 43, name: 'sign_in', statements: statementsOf(signIn) },
  { version: 44, name: 'page_max_age', statements: statementsOf(pageMaxAge) },
  { version: 45, name: 'pruning', statements: statementsOf(pruning) },
  { version: 46, name: 'request_outcomes', statements: statementsOf(requestOutcomes) },
  { version: 47, name: 'usage_summed', statements: statementsOf(usageSummed) },
  { version: 49, name: 'unknown_costs', statements: statementsOf(unknownCosts) },
  { version: 50, name: 'erase_token_ids', statements: statementsOf(eraseTokenIds) },
  { version: 51, name: 'hour_tokens', statements: statementsOf(hourTokens) },
  { version: 52, name: 'day_unknown_costs', statements: statementsOf(dayUnknownCosts) },
  { version: 53, name: 'served_totals', statements: statementsOf(servedTotals) },
]

/** Splits a migration at each semicolon that ends a line. Trigger bodies stay whole. */
export function statementsOf(sql: string): string[] {
  const statements: string[] = []
  let current: string[] = []
  let insideTrigger = false
  for (const line of sql.split('\n')) {
    if (line.startsWith('--') || line.trim() === '') continue
    current.push(line)
    if (/^create trigger\b/i.test(line)) insideTrigger = true
    if (insideTrigger ? /^end;/i.test(line) : line.trimEnd().endsWith(';')) {
      statements.push(current.join('\n'))
      current = []
      insideTrigger = false
    }
  }
  if (current.length > 0) throw new Error('A migration ends without a semicolon')
  return statements
}

/** The schema version of this program. */
export const latestSchema = migrations.at(-1)?.version ?? 0

export const createMigrations =
  'create table if not exists schema_migrations (version integer primary key, name text not null, applied_at integer not null) strict'

/** The schema version of a database; 0 for one without tables of this program. Writes nothing. */
export async function readSchema(client: Client): Promise<number> {
  const { rows: tables } = await client.execute("select name from sqlite_master where name = 'schema_migrations'")
  if (tables.length === 0) return 0
  const { rows } = await client.execute('select max(version) as version from schema_migrations')
  return Number(rows[0]?.version ?? 0)
}

export function newerSchema(found: number): string {
  return `The database has schema version ${found}, this program supports up to ${latestSchema}; use the newer program that made it`
}

/** Whether a copy into this database was interrupted: its identity is copied last. */
export async function isUnfinishedCopy(client: Client): Promise<boolean> {
  const { rows } = await client.execute('select id from installation')
  return rows.length === 0
}

export const unfinishedCopy = 'is a copy that was interrupted; remove it and copy again'

/** The schema version of a file; 0 for a new one, which it prepares for migrations. */
export async function readVersion(client: Client): Promise<number> {
  const found = await readSchema(client)
  if (found === 0) await client.batch([createMigrations], 'write')
  return found
}

/** Runs the missing migrations of a file, each in one transaction. */
export async function migrate(client: Client, version: number): Promise<void> {
  for (const migration of migrations) {
    if (migration.version <= version) continue
    const record = {
      sql: 'insert into schema_migrations (version, name, applied_at) values (?, ?, ?)',
      args: [migration.version, migration.name, Date.now()],
    }
    await client.batch([...migration.statements, record], 'write')
  }
}
