// Admin operations on archives: move old rows into files, list the files, and check them. Over HTTP they are only
// listed: nobody there chooses a folder of the server.
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { archiveKinds } from '../../db/schema/archive-kinds.ts'
import type { Archive } from '../../db/schema/record-schema.ts'
import { listArchives } from '../../db/tables/archives.ts'
import { folderProblem } from '../archive/folder.ts'
import { findUnknownFiles, listAllArchives, verifyArchive } from '../archive/verify.ts'
import { Fault } from '../fault.ts'
import { offsetMax, reportRowsDefault, reportRowsMax } from '../limits.ts'
import { type } from '../values/shape.ts'
import { timeShape } from '../values/shapes.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { timeOf } from './operation/references.ts'

const kindShape = type.enumerated(...archiveKinds)
const folderShape = type('1 <= string <= 4096')
const runInput = type({ '+': 'reject', before: timeShape, 'to?': folderShape, 'kind?': kindShape })
const listInput = type({
  '+': 'reject',
  'kind?': kindShape,
  'limit?': `1 <= number.integer <= ${reportRowsMax}`,
  'before_id?': `1 <= number.integer <= ${offsetMax}`,
})
const verifyInput = type({ '+': 'reject', 'from?': folderShape, 'kind?': kindShape })

const time = type('string').configure({ format: 'date-time' })
export const archiveResponse = type({
  id: 'number.integer',
  kind: kindShape,
  state: "'writing' | 'verified' | 'removing' | 'finished'",
  folder: 'string',
  file: 'string',
  rows: 'number.integer',
  first_row_id: 'number.integer',
  last_row_id: 'number.integer',
  from: time,
  to: time,
  before: time,
  organizations: type('string | null').array(),
  bytes: 'number.integer | null',
  sha256: 'string | null',
  created_at: time,
  finished_at: time.or('null'),
  pruned_at: time.or('null'),
  node: 'string | null',
}).configure({ title: 'Archive' })

export const archiveOperations = {
  // Not `mutates`: changes would wait for as long as the run takes. Runs exclude each other.
  'archive.run': operation(runInput, run),
  'archive.list': operation(listInput, list),
  'archive.verify': operation(verifyInput, verify),
}

/** @throws Fault `conflict` during another run, `unavailable` when a file cannot be written */
async function run(
  context: Needs<'config' | 'archiving' | 'signingKeys' | 'now' | 'actor' | 'onProgress'>,
  { before, to, kind }: typeof runInput.infer,
) {
  const { actor, archiving, config, now, onProgress, signingKeys } = context
  const time = before.getTime()
  if (time > now()) throw new Fault('invalid', `before is ${timeOf(time)}, which is in the future: use an earlier time`)
  const folder = to ?? config.retention.folder
  if (folder === undefined)
    throw new Fault('invalid', 'There is no folder for the archives', {
      hint: '; use --to, or set LATCHKEY_ARCHIVE_DIR',
    })
  const problem = folderProblem(folder)
  if (problem !== undefined) throw new Fault('invalid', problem)
  const kinds = kind === undefined ? archiveKinds : [kind]
  const request = { before: Object.fromEntries(kinds.map((each) => [each, time])), folder, by: actor }
  const archives = await archiving.run(request, { isAlone: signingKeys === undefined, onProgress })
  return { data: archives.map(showArchive) }
}

async function list(
  { reader }: Needs<'reader'>,
  { kind, limit = reportRowsDefault, before_id }: typeof listInput.infer,
) {
  const archives = await listArchives(reader, { kind, beforeId: before_id, limit })
  return { data: archives.map(showArchive) }
}

async function verify(context: Needs<'database' | 'reader' | 'onProgress'>, { from, kind }: typeof verifyInput.infer) {
  const { reader, database, onProgress = () => {} } = context
  const archives = (await listAllArchives(reader, kind)).filter(({ state }) => state !== 'writing').reverse()
  const total = archives.reduce((sum, { rowCount }) => sum + rowCount, 0)
  let done = 0
  const data = []
  const elsewhere = []
  for (const archive of archives) {
    const folder = from ?? archive.folder
    if (from === undefined && isElsewhere(archive)) {
      elsewhere.push({ file: archive.file, node: archive.node })
      continue
    }
    const problem = await verifyArchive(archive, folder, database.path)
    data.push({ ...showArchive(archive), folder, ok: problem === null, problem })
    done += archive.rowCount
    onProgress(done, total)
  }
  const folders = from === undefined ? data.map(({ folder }) => folder) : [from]
  const unknown_files = await findUnknownFiles(reader, new Set(folders))
  return { ok: data.every(({ ok }) => ok), data, unknown_files, elsewhere }
}

/** Whether only another node has the file: each has its own disk, unless they share a folder. */
function isElsewhere({ node, folder, file }: Archive): boolean {
  return node !== null && node !== hostname() && !existsSync(join(folder, file))
}

function showArchive(row: Archive): typeof archiveResponse.infer {
  return {
    id: row.id,
    kind: row.kind,
    state: row.state,
    folder: row.folder,
    file: row.file,
    rows: row.rowCount,
    first_row_id: row.firstRowId,
    last_row_id: row.lastRowId,
    from: timeOf(row.firstAt),
    to: timeOf(row.lastAt),
    before: timeOf(row.before),
    organizations: row.organizations,
    bytes: row.bytes,
    sha256: row.sha256,
    created_at: timeOf(row.createdAt),
    finished_at: timeOf(row.finishedAt),
    pruned_at: timeOf(row.prunedAt),
    node: row.node,
  }
}
