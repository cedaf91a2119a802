// What a database holds, in numbers that a backup can be compared by: the schema, and the rows of each table.
import type { Client } from '@libsql/core/api'

/** `highest` is the largest integer key of a table that has one; null for an empty table. */
export type TableFacts = { rows: number; highest: number | null }

/** Counts the rows of every table, by name. A gigabyte takes about a second. */
export async function readTableFacts(client: Client): Promise<Record<string, TableFacts>> {
  const { rows: tables } = await client.execute(
    "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name",
  )
  const facts: Record<string, TableFacts> = {}
  for (const table of tables) {
    const name = String(table.name)
    const { rows: columns } = await client.execute(`pragma table_info(${quoted(name)})`)
    const keys = columns.filter(({ pk }) => Number(pk) > 0)
    const hasIntegerKey = keys.length === 1 && String(keys[0]?.type).toLowerCase() === 'integer'
    const highest = hasIntegerKey ? `max(${quoted(String(keys[0]?.name))})` : 'null'
    const { rows } = await client.execute(`select count(*) as rows, ${highest} as highest from ${quoted(name)}`)
    facts[name] = { rows: Number(rows[0]?.rows), highest: numberOrNull(rows[0]?.highest) }
  }
  return facts
}

/** The version of the last migration; 0 without any. */
export async function readSchemaVersion(client: Client): Promise<number> {
  const { rows } = await client.execute('select max(version) as version from schema_migrations')
  return Number(rows[0]?.version ?? 0)
}

/** Every table, index, trigger and view as the migrations wrote it, in one order. */
export async function readSchemaTexts(client: Client): Promise<string[]> {
  const { rows } = await client.execute(
    "select type, name, sql from sqlite_master where name not like 'sqlite_%' order by type, name",
  )
  return rows.map(({ type, name, sql }) => `${type} ${name}: ${sql}`)
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function numberOrNull(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value)
}
