// The admin operation that collects the trail of a subject: its exchanges, its requests, their days and the changes that explain them, each with
// its proof.
import { readLastRowIds, readLoggedRows } from '../../db/read/log-rows.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import type { LogSource } from '../../db/schema/log-schema.ts'
import { listChangeIdsOf } from '../../db/tables/admin-changes.ts'
import { listFilesHolding } from '../../db/tables/archives.ts'
import { type ErasedSubject, listSubjectRows } from '../../db/tables/erasure.ts'
import { listAllLogRecords } from '../../db/tables/log-records.ts'
import { rowIdsOf } from '../../db/tables/usage.ts'
import { type ClosedRange, closedRanges } from '../audit-log/closed-days.ts'
import type { ErasureBody } from '../audit-log/erasure-record.ts'
import { proveRow } from '../audit-log/prove.ts'
import { type TrailHead, type TrailRequest, trailFormat } from '../audit-log/trail-format.ts'
import { createStoredTree, type StoredTree } from '../audit-log/transparency/stored-tree.ts'
import { readUsageDays, recordName } from '../audit-log/usage-days.ts'
import { Fault } from '../fault.ts'
import { reportRowsMax } from '../limits.ts'
import { type } from '../values/shape.ts'
import { claimValueShape, referenceShape } from '../values/shapes.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { findIssuerIdEver, organizationInput } from './operation/references.ts'
import { page } from './reports/report-page.ts'

const trailInput = type({
  '+': 'reject',
  ...organizationInput,
  issuer: referenceShape.configure({ says: 'The issuer, by name or id; a deleted one by id' }),
  subject: claimValueShape.configure({ says: 'The `sub` of its tokens, exactly' }),
  'since?': page['since?'],
  'until?': page['until?'],
})

export const auditTrailOperations = {
  // Not `mutates`: it signs a checkpoint, and changes need not wait for that.
  'audit.trail': operation(trailInput, collectTrail),
}

/** `text`: a proof, or a request as JSON. */
export type TrailItem = { kind: 'exchange' | 'change' | 'usage_day' | 'erasure' | 'request'; text: string }

type TrailContext = Needs<'reader' | 'auditLog' | 'registry' | 'now' | 'onProgress'>
/** `ids`: of everything whose changes explain the rows. */
type Collection = { items: TrailItem[]; ids: Set<string> }

/** @throws Fault `invalid` for more rows than a trail takes, `conflict` if the log leaves exchanges out */
async function collectTrail(
  context: TrailContext,
  { organization, issuer, subject, ...times }: typeof trailInput.infer,
): Promise<{ head: TrailHead; data: TrailItem[]; archives: string[] }> {
  const { reader, auditLog, registry, now } = context
  if (auditLog.settings.mode !== 'full')
    throw new Fault('conflict', 'The audit log leaves exchanges out: set LATCHKEY_AUDIT_LOG to full')
  const issuerId = await findIssuerIdEver(registry, issuer, organization)
  const known = registry.issuers.get(issuerId) ?? (await registry.deleted.issuer(issuerId))
  if (known === undefined) throw new Error(`The issuer ${issuerId} is not in the database`)
  const signed = await auditLog.checkpoint()
  const range = { since: times.since?.getTime(), until: times.until?.getTime() }
  const rows = await listRows(context, { issuerId, subject }, range)
  const collected: Collection = { items: [], ids: new Set([issuerId]) }
  const prove = async (kind: TrailItem['kind'], source: LogSource, id: number) => {
    const found = await proveRow(reader, signed, source, id)
    // A row without one was erased or archived meanwhile.
    if (found?.proof === undefined) return undefined
    collected.items.push({ kind, text: found.proof })
    return JSON.parse(found.line) as Record<string, string | null>
  }
  for (const id of rows.exchanges) {
    const row = await prove('exchange', 'exchanges', id)
    for (const each of [row?.policy_id, row?.key_id]) if (each != null) collected.ids.add(each)
  }
  await collectRequests(context, rows.usage, known.organizationId, collected, prove)
  for (const id of await listChangeIdsOf(reader, [...collected.ids])) await prove('change', 'changes', id)
  const head: TrailHead = {
    ...{ format: trailFormat, origin: signed.origin, organization_id: known.organizationId },
    ...{ issuer_id: issuerId, issuer_url: known.issuerUrl, subject },
    ...{ since: isoOf(range.since), until: isoOf(range.until), made_at: isoOf(now()) ?? '' },
  }
  const files = await listFilesHolding(reader, { ...range, organizationId: known.organizationId })
  return { head, data: collected.items, archives: files.map(({ file }) => file) }
}

function isoOf(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString()
}

type Times = { since: number | undefined; until: number | undefined }

async function listRows({ reader, onProgress }: TrailContext, subject: ErasedSubject, times: Times) {
  const [{ exchanges: lastExchange }, { end }] = [await readLastRowIds(reader), await rowIdsOf(reader)]
  const total = lastExchange + end - 1
  const report =
    (before: number): OnProgress =>
    (done) =>
      onProgress?.(before + done, total)
  const exchanges = await listSubjectRows(reader, 'exchanges', subject, { last: lastExchange, ...times }, report(0))
  const usage = await listSubjectRows(reader, 'usage', subject, { last: end - 1, ...times }, report(lastExchange))
  for (const [name, ids] of Object.entries({ exchanges, requests: usage }))
    if (ids.length > reportRowsMax)
      throw new Fault('invalid', `There are ${ids.length} ${name}, and a trail takes ${reportRowsMax}`, {
        hint: ': ask for a shorter time with --since and --until',
      })
  return { exchanges, usage }
}

type Prove = (kind: TrailItem['kind'], source: LogSource, id: number) => Promise<unknown>

/** Adds requests with their places in the trees of their days, and the proofs of these days and of erasures in them. */
async function collectRequests(
  { reader }: TrailContext,
  ids: readonly number[],
  organizationId: string,
  { items, ids: named }: Collection,
  prove: Prove,
): Promise<void> {
  const add = (request: TrailRequest) => {
    items.push({ kind: 'request', text: JSON.stringify(request) })
    const { key_id, model } = JSON.parse(request.row) as { key_id: string; model: string | null }
    named.add(key_id)
    // A price is of a model, by its name.
    if (model !== null) named.add(model)
  }
  const proven = new Set<string>()
  let left = [...ids]
  for await (const { from, through, records } of closedRanges(reader)) {
    const own = new Set(left.filter((id) => id <= through))
    if (own.size === 0) continue
    left = left.filter((id) => id > through)
    const found = await findInTrees(reader, { from, through }, organizationId, own)
    for (const { day, index, line, tree } of found)
      add({
        row: line,
        day,
        from,
        index,
        hashes: tree.proofOf(index).map((hash) => Buffer.from(hash).toString('base64')),
      })
    const days = new Set(found.map(({ day }) => day))
    for (const { id, body } of records) {
      if (body.organization_id !== organizationId || !days.has(body.day)) continue
      proven.add(recordName(body))
      await prove('usage_day', 'records', id)
    }
  }
  for (const id of left) {
    const [row] = await readLoggedRows(reader, 'usage', { after: id - 1, last: id, most: 1 })
    if (row !== undefined) add({ row: row.line, day: null, from: 0, index: 0, hashes: [] })
  }
  for await (const { id, body } of listAllLogRecords(reader, 'erasure')) {
    const { organization_id, days } = JSON.parse(body) as ErasureBody
    if (days.some(({ day, from }) => proven.has(recordName({ organization_id, day, from }))))
      await prove('erasure', 'records', id)
  }
}

type FoundRequest = { day: string; index: number; line: string; tree: StoredTree }

async function findInTrees(
  reader: TrailContext['reader'],
  range: Pick<ClosedRange, 'from' | 'through'>,
  organizationId: string,
  ids: ReadonlySet<number>,
): Promise<FoundRequest[]> {
  const trees = new Map<string, StoredTree>()
  const found: FoundRequest[] = []
  await readUsageDays(reader, range, {
    onLeaf: (day, organization, { id, line }, leafHash) => {
      if (organization !== organizationId) return
      const tree = trees.get(day) ?? createStoredTree()
      trees.set(day, tree)
      if (ids.has(id)) found.push({ day, index: tree.size(), line, tree })
      tree.add(leafHash)
    },
  })
  return found
}
