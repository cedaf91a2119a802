// A trail: everything that the log and the ledger have of one subject, from its tokens to their cost, with proofs. Its reader needs nothing but
// the verifier key. Rules only.

import { checkShape } from '../values/shape.ts'
import { isInDay } from './day-place.ts'
import type { ErasureBody } from './erasure-record.ts'
import { checkChanges, type ProvenChange, parseChange } from './trail-changes.ts'
import {
  type LedgerRow,
  ledgerRow,
  type ProofFile,
  type Trail,
  type TrailHead,
  type TrailRequest,
} from './trail-format.ts'
import { createOpening, type OpenProof, type ProofState, type ProvenEntry, problemOfAll } from './trail-proofs.ts'
import type { VerifierKey } from './transparency/note.ts'
import { isClosedBy, recordName, type UsageDayBody } from './usage-days.ts'

export type ProvenExchange = {
  index: number
  at: string
  request_id: string
  outcome: string
  reason: string | null
  policy_id: string | null
  key_id: string | null
  access_token_id: string | null
}
export type ProvenRequest = LedgerRow & { day: string | null; isOfExchange: boolean }
export type KeyDay = { day: string; key_id: string; shown: number; all: number }

export type TrailCheck = {
  problems: string[]
  /** Of the checkpoint under which all proofs are. */
  size: number
  witnesses: { name: string; at: number }[]
  exchanges: ProvenExchange[]
  requests: ProvenRequest[]
  changes: ProvenChange[]
  /** The names that changes give to ids. */
  names: Map<string, string>
  /** How many of the requests that a key made on a closed day are in the trail. */
  keyDays: KeyDay[]
  /** Of requests in closed days. */
  proven: Totals
  /** Of requests that the log does not have yet: nothing proves them. */
  open: Totals
}
export type Totals = { requests: number; tokens: number; nanodollars: number }

const problemsMax = 20

export function checkTrail(
  trail: Trail,
  keys: readonly VerifierKey[],
  witnessKeys: readonly VerifierKey[] = [],
): TrailCheck {
  const { head } = trail
  const found: TrailCheck = {
    problems: [],
    ...{ size: 0, witnesses: [], exchanges: [], requests: [], changes: [], names: new Map(), keyDays: [] },
    ...{ proven: { requests: 0, tokens: 0, nanodollars: 0 }, open: { requests: 0, tokens: 0, nanodollars: 0 } },
  }
  const report = (problem: string) => void (found.problems.length < problemsMax && found.problems.push(problem))
  const problem = problemOfAll(trail, keys, witnessKeys)
  if (problem !== undefined) {
    report(problem)
    return found
  }
  const state: ProofState = { size: 0, witnesses: [], newestAt: Date.parse(head.made_at) || 0 }
  const open = createOpening(keys, witnessKeys, state, report)
  for (const proof of trail.exchanges) checkExchange(open(proof, 'exchange'), proof, head, found, report)
  for (const proof of trail.changes) {
    const change = open(proof, 'change')
    if (change !== undefined) found.changes.push(parseChange(proof.file, change))
  }
  for (const { target_id: id, after } of found.changes)
    if (typeof after?.name === 'string') found.names.set(id, after.name)
  checkChanges(found.changes, head, report)
  const days = readDays(trail, open)
  Object.assign(found, { size: state.size, witnesses: state.witnesses })
  checkRequests(trail, days, { found, report, madeAt: state.newestAt })
  const ids = [
    ...found.exchanges.flatMap((each) => [each.policy_id, each.key_id]),
    ...found.requests.map((each) => each.key_id),
  ]
  const known = new Set(found.changes.map(({ target_id: id }) => id))
  for (const id of new Set(ids))
    if (id !== null && !known.has(id))
      report(`changes/: no change says what ${id} is, which exchanges or requests name`)
  return found
}

function checkExchange(
  proven: ProvenEntry | undefined,
  { file }: ProofFile,
  head: TrailHead,
  found: TrailCheck,
  report: (problem: string) => void,
): void {
  if (proven === undefined) return
  const row = JSON.parse(proven.row) as ProvenExchange & { subject: string | null; issuer_id: string | null }
  if (row.subject !== head.subject || row.issuer_id !== head.issuer_id) {
    report(`${file}: it is not of the subject in trail.json`)
    return
  }
  const { request_id, outcome, reason, policy_id, key_id, access_token_id } = row
  found.exchanges.push({
    index: proven.index,
    at: proven.at,
    request_id,
    outcome,
    reason,
    policy_id,
    key_id,
    access_token_id,
  })
}

/** The records of closed days by name, with the roots that they have since erasures. */
function readDays({ days, erasures }: Trail, open: OpenProof): Map<string, UsageDayBody> {
  const known = new Map<string, UsageDayBody>()
  for (const proof of days) {
    const proven = open(proof, 'usage_day')
    if (proven === undefined) continue
    const body = bodyOf<UsageDayBody>(proven)
    known.set(recordName(body), body)
  }
  for (const proof of erasures) {
    const proven = open(proof, 'erasure')
    const { organization_id, days: roots = [] } = proven === undefined ? {} : bodyOf<Partial<ErasureBody>>(proven)
    for (const { day, from, root } of roots) {
      const body = known.get(recordName({ organization_id: organization_id ?? '', day, from }))
      if (body !== undefined) body.root = root
    }
  }
  return known
}

function bodyOf<Body>({ row }: ProvenEntry): Body {
  return JSON.parse((JSON.parse(row) as { body: string }).body) as Body
}

function checkRequests(
  { head, requests }: Trail,
  days: ReadonlyMap<string, UsageDayBody>,
  { found, report, madeAt }: { found: TrailCheck; report: (problem: string) => void; madeAt: number },
): void {
  const closedThrough = Math.max(0, ...[...days.values()].map(({ through }) => through))
  const tokens = new Set(found.exchanges.map(({ access_token_id: id }) => id))
  const seen = new Set<string>()
  const shown = new Map<string, KeyDay>()
  for (const [number, request] of requests.entries()) {
    const row = parseRow(request)
    const isClosed = row !== undefined && (row.id <= closedThrough || isClosedBy(row.at, madeAt))
    const problem =
      row === undefined ? 'it has no row of the ledger' : requestProblem(request, row, head, days, { seen, isClosed })
    if (row === undefined || problem !== undefined) {
      report(`requests.ndjson, line ${number + 1}: ${problem}`)
      continue
    }
    found.requests.push({ ...row, day: request.day, isOfExchange: tokens.has(row.access_token_id) })
    const totals = request.day === null ? found.open : found.proven
    totals.requests += 1
    totals.tokens += row.total_tokens ?? 0
    totals.nanodollars += row.cost_nanodollars ?? 0
    if (request.day === null) continue
    const name = `${request.day} ${row.key_id}`
    const keyDay = shown.get(name) ?? { day: request.day, key_id: row.key_id, shown: 0, all: 0 }
    keyDay.shown += 1
    shown.set(name, keyDay)
  }
  for (const { day, keys } of days.values())
    for (const [key, { requests: all }] of Object.entries(keys)) {
      const keyDay = shown.get(`${day} ${key}`)
      if (keyDay !== undefined) keyDay.all += all
    }
  found.keyDays = [...shown.values()]
}

function parseRow({ row }: TrailRequest): LedgerRow | undefined {
  try {
    return checkShape(ledgerRow, JSON.parse(row))
  } catch {
    return undefined
  }
}

/** Why a row of the ledger counts for nothing; undefined if it is proven, or its day is open. */
function requestProblem(
  request: TrailRequest,
  row: LedgerRow,
  { subject, issuer_id: issuerId, organization_id }: TrailHead,
  days: ReadonlyMap<string, UsageDayBody>,
  { seen, isClosed }: { seen: Set<string>; isClosed: boolean },
): string | undefined {
  const { day, from, index } = request
  if (row.subject !== subject || row.issuer_id !== issuerId || row.organization_id !== organization_id)
    return 'it is not of the subject in trail.json'
  if (day === null)
    return isClosed ? 'it says that its day is open, but the log has the totals of the day by then' : undefined
  const name = recordName({ organization_id, day, from })
  const record = days.get(name)
  if (record === undefined) return `no proof brings the totals of ${day} along`
  const place = `${name} ${index}`
  if (seen.has(place)) return 'it is there twice'
  seen.add(place)
  if (new Date(row.at).toISOString().slice(0, 10) !== day) return 'it is of another day'
  return isInDay(record, request) ? undefined : `the ledger of ${day} does not have it`
}
