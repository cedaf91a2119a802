// Databases with old rows, and archives as anyone can read them: with gunzip and a JSON parser, without the program.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { sql } from 'drizzle-orm'
import type { Database } from '../../db/file/open.ts'
import { readInParts } from '../../db/read/fitting.ts'
import { exchangeAudit, usage } from '../../db/schema/record-schema.ts'
import type { Writer } from '../../db/write/write.ts'
import type { Manifest } from '../../src/archive/manifest.ts'
import { auditRow, type OrganizationRows, usageRow } from './rows.ts'

export type ArchiveFile = { file: string; rows: Record<string, unknown>[]; manifest: Manifest | undefined }

/** Every finished file of a folder, by name. */
export function readArchives(folder: string): ArchiveFile[] {
  const names = readdirSync(folder).toSorted()
  return names
    .filter((name) => name.endsWith('.ndjson.gz'))
    .map((file) => {
      const lines = gunzipSync(readFileSync(join(folder, file)))
        .toString()
        .split('\n')
      const manifest = file.replace('.ndjson.gz', '.manifest.json')
      return {
        file,
        rows: lines.slice(0, -1).map((line) => JSON.parse(line) as Record<string, unknown>),
        manifest: names.includes(manifest)
          ? (JSON.parse(readFileSync(join(folder, manifest), 'utf8')) as Manifest)
          : undefined,
      }
    })
}

/** A request id of this time (UUID version 7). */
export function requestIdAt(at: number): string {
  const time = at.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${crypto.randomUUID().slice(-12)}`
}

/** Adds exchanges and requests, one a second of each, the first at `at`. */
export async function addRows(writer: Writer, own: OrganizationRows, count: number, at: number): Promise<void> {
  const ids = Array.from({ length: count }, (_, index) => index)
  await Promise.all(
    ids.flatMap((index) => {
      const time = { at: at + 1_000 * index }
      const named = { organizationId: own.organization.id, subject: `"ünïted"\n${index}` }
      return [
        writer.appendAudit({ ...auditRow(requestIdAt(time.at)), ...time, ...named }),
        writer.appendUsage({ ...usageRow(requestIdAt(time.at), own), ...time, subject: named.subject }),
      ]
    }),
  )
}

/** Every row of both tables, by number. */
export async function readRows({ orm }: Database, table: 'exchange_audit' | 'usage') {
  const tables = { exchange_audit: exchangeAudit, usage }
  const all: Record<string, unknown>[] = []
  const parts = readInParts(orm, tables[table], 2_000, (isInPart) =>
    orm.all<Record<string, unknown>>(sql`select * from ${tables[table]} where ${isInPart} order by id`),
  )
  for await (const rows of parts) all.push(...rows)
  return all
}
