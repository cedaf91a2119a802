// Copies an installation from a database file to a database server, or back, and proves that the copy is equal.
import { type CopiedTable, copyTable, digestTable, hasRows, listCopiedTables } from '../../db/copy-rows.ts'
import { listNodes } from '../../db/nodes.ts'
import type { Database, OpenRefusal } from '../../db/open.ts'
import { Fault } from '../fault.ts'

export type CopiedDatabase = { tables: { table: string; rows: number; sha256: string }[]; rows: number }

type Side = { open: (create: boolean) => Promise<Database | OpenRefusal>; url: string }

/**
 * Copies everything, then compares the number and the SHA-256 of the rows of each table. Exactly one side is a file.
 * @throws Fault `conflict` if nodes serve either database, the target is not empty or the copy differs
 */
export async function copyDatabase(from: Side, to: Side, onTable: (name: string) => void): Promise<CopiedDatabase> {
  const source = await openSide(from, false)
  try {
    await refuseLiveNodes(source, from.url)
    const target = await openSide(to, true)
    try {
      const tables = await listCopiedTables(source.kind === 'file' ? source : target)
      if (await hasRows(target, tables))
        throw new Fault('conflict', `The target ${to.url} is not empty; name a new database`)
      for (const table of tables) {
        onTable(table.name)
        await copyTable(source, target, table)
      }
      return await compare(source, target, tables)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function compare(source: Database, target: Database, tables: CopiedTable[]): Promise<CopiedDatabase> {
  const digests: CopiedDatabase['tables'] = []
  for (const table of tables) {
    const [one, other] = [await digestTable(source, table), await digestTable(target, table)]
    if (one.rows !== other.rows || one.sha256 !== other.sha256)
      throw new Fault('conflict', `The copy of ${table.name} differs from its source; remove the target and copy again`)
    digests.push(one)
  }
  return { tables: digests, rows: digests.reduce((sum, { rows }) => sum + rows, 0) }
}

async function openSide({ open }: Side, create: boolean): Promise<Database> {
  const opened = await open(create)
  if ('refused' in opened) throw new Fault('conflict', opened.message, { cause: opened.cause })
  return opened
}

async function refuseLiveNodes({ kind, orm }: Database, url: string): Promise<void> {
  if (kind === 'file') return
  const live = (await listNodes(orm)).filter(({ isLive }) => isLive).map(({ name }) => name)
  if (live.length > 0) throw new Fault('conflict', `These nodes serve ${url}: ${live.join(', ')}. Stop them first`)
}
