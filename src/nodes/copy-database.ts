// Copies an installation from a database file to a database server, or back, and proves that the copy is equal.

import type { OpenRefusal } from '../../db/file/file-errors.ts'
import type { Database } from '../../db/file/open.ts'
import {
  type CopiedTable,
  clearFilled,
  copyTable,
  countRows,
  digestTable,
  hasRows,
  isIdentity,
  listCopiedTables,
  readNewestCommit,
  type TableDigest,
} from '../../db/read/copy-rows.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { listNodes } from '../../db/tables/nodes.ts'
import { Fault } from '../fault.ts'

export type CopiedDatabase = { tables: TableDigest[]; rows: number }

type Side = { open: (create: boolean) => Promise<Database | OpenRefusal>; url: string }

/**
 * Copies everything, then compares the number and the SHA-256 of the rows of each table. Exactly one side is a file.
 * An interrupted copy is refused by every program that opens it.
 * @throws Fault `conflict` if nodes serve the source, the source changes meanwhile, the target is not empty or the copy differs
 */
export async function copyDatabase(from: Side, to: Side, onProgress: OnProgress): Promise<CopiedDatabase> {
  const source = await openSide(from, false)
  try {
    await refuseLiveNodes(source, from.url)
    const target = await openSide(to, true)
    try {
      const tables = await listCopiedTables(source.kind === 'file' ? source : target)
      if (await hasRows(target, tables))
        throw new Fault('conflict', `The target ${to.url} is not empty; name ${emptyTarget(target)}`)
      const newestCommit = await readNewestCommit(source)
      await clearFilled(target)
      const onRows = halfBy(await countRows(source, tables), onProgress)
      const digests: TableDigest[] = []
      const copyAll = async (part: CopiedTable[]) => {
        for (const table of part) await copyTable(source, target, table, onRows)
        for (const table of part) digests.push(await compare(source, target, table, onRows))
      }
      await copyAll(tables.filter((table) => !isIdentity(table)))
      if ((await readNewestCommit(source)) !== newestCommit)
        throw new Fault('conflict', `${from.url} changed meanwhile. ${copyAgain}`)
      await copyAll(tables.filter(isIdentity))
      return { tables: digests, rows: digests.reduce((sum, { rows }) => sum + rows, 0) }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

const copyAgain = 'Stop all nodes and commands, remove the target and copy again'

const emptyTarget = ({ kind }: Database) => (kind === 'file' ? 'a new file' : 'a server that runs on an empty folder')

/** Copying is half of the work, comparing the other half. */
function halfBy(total: number, onProgress: OnProgress): (rows: number) => void {
  let done = 0
  return (rows) => {
    done += rows / 2
    onProgress(done, total)
  }
}

async function compare(source: Database, target: Database, table: CopiedTable, onRows: (rows: number) => void) {
  const [one, other] = await Promise.all([digestTable(source, table, onRows), digestTable(target, table)])
  if (one.rows !== other.rows || one.sha256 !== other.sha256)
    throw new Fault('conflict', `The copy of ${table.name} differs from its source. ${copyAgain}`)
  return one
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
