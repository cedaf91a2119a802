// A trail: everything that the log and the ledger have of one subject, from its tokens to their cost, with proofs. Its reader needs nothing but
// the verifier key. Rules only.

import { isInDay } from './day-place.ts'
import type { ErasureBody } from './erasure-record.ts'
import { type CheckedProof, checkRowProof } from './row-proof.ts'
import type { Trail, TrailHead, TrailRequest } from './trail-format.ts'
import type { VerifierKey } from './transparency/note.ts'
import { recordName, type UsageDayBody } from './usage-days.ts'

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
export type LedgerRow = {
  at: number
  request_id: string
  organization_id: string
  issuer_id: string | null
  subject: string | null
  key_id: string
  policy_id: string | null
  access_token_id: string | null
  endpoint: string
  model: string | null
  status: number
  total_tokens: number | null
  cost_nanodollars: number | null
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
  /** How many changes are proven, and the names that they give to ids. */
  changes: number
  names: Map<string, string>
  /** How many of the requests that a key made on a closed day are in the trail. */
  keyDays: KeyDay[]
  /** Of requests in closed days. */
  proven: { requests: number; tokens: number; nanodollars: number }
  /** Requests of days that are not closed: nothing proves them yet. */
  open: number
}

const problemsMax = 20

export function checkTrail(
  trail: Trail,
  keys: readonly VerifierKey[],
  witnessKeys: readonly VerifierKey[] = [],
): TrailCheck {
  const { head } = trail
  const found: TrailCheck = {
    problems: [],
    ...{ size: 0, witnesses: [], exchanges: [], requests: [], changes: 0, names: new Map(), keyDays: [] },
    ...{ proven: { requests: 0, tokens: 0, nanodollars: 0 }, open: 0 },
  }
  const report = (problem: string) => void (found.problems.length < problemsMax && found.problems.push(problem))
  const open = createOpening(head, keys, witnessKeys, found, report)
  for (const [number, text] of trail.exchanges.entries())
    checkExchange(open(text, 'exchange', number), head, found, report)
  const issuerUrls = new Set<string>()
  for (const [number, text] of trail.changes.entries()) {
    const change = open(text, 'change', number)
    if (change === undefined) continue
    found.changes += 1
    const {
      kind,
      target_id: id,
      after,
    } = JSON.parse(change.row) as { kind: string; target_id: string; after: string | null }
    const { name, issuer_url: url } = JSON.parse(after ?? '{}') as { name?: string; issuer_url?: string }
    if (name !== undefined) found.names.set(id, name)
    if (kind === 'issuer' && id === head.issuer_id && url !== undefined) issuerUrls.add(url)
  }
  if (!issuerUrls.has(head.issuer_url)) report(`No change in the log says that the issuer is ${head.issuer_url}`)
  checkRequests(trail, readDays(trail, open), found, report)
  return found
}

type Proven = Extract<CheckedProof, { problem: undefined }>
type Open = (text: string, kind: string, number: number) => Proven | undefined

/** Returns a function that checks a proof of a kind. No entry may be counted twice, and all must be under one checkpoint. */
function createOpening(
  { origin }: TrailHead,
  keys: readonly VerifierKey[],
  witnessKeys: readonly VerifierKey[],
  found: TrailCheck,
  report: (problem: string) => void,
): Open {
  const seen = new Set<number>()
  return (text, kind, number) => {
    const results = keys.map((key) => checkRowProof(text, key, witnessKeys))
    const checked = results.find(({ problem }) => problem === undefined) ?? results[0]
    const name = `proof ${number + 1} of kind ${kind}`
    if (checked === undefined || checked.problem !== undefined)
      return void report(`${name} proves nothing: ${checked?.problem ?? 'there is no key'}`)
    if (checked.kind !== kind) return void report(`${name} is of an entry of kind ${checked.kind}`)
    if (checked.origin !== origin) return void report(`${name} is of another log`)
    if (seen.has(checked.index)) return void report(`${name} is there twice`)
    if (found.size !== 0 && checked.size !== found.size) return void report(`${name} is under another checkpoint`)
    seen.add(checked.index)
    found.size = checked.size
    found.witnesses = checked.witnesses
    return checked
  }
}

function checkExchange(
  proven: Proven | undefined,
  head: TrailHead,
  found: TrailCheck,
  report: (problem: string) => void,
): void {
  if (proven === undefined) return
  const row = JSON.parse(proven.row) as ProvenExchange & { subject: string | null; issuer_id: string | null }
  if (row.subject !== head.subject || row.issuer_id !== head.issuer_id) {
    report(`the exchange ${row.request_id} is of another subject`)
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
function readDays({ days, erasures }: Trail, open: Open): Map<string, UsageDayBody> {
  const known = new Map<string, UsageDayBody>()
  for (const [number, text] of days.entries()) {
    const proven = open(text, 'usage_day', number)
    if (proven === undefined) continue
    const body = bodyOf<UsageDayBody>(proven)
    known.set(recordName(body), body)
  }
  for (const [number, text] of erasures.entries()) {
    const proven = open(text, 'erasure', number)
    const { organization_id, days: roots = [] } = proven === undefined ? {} : bodyOf<Partial<ErasureBody>>(proven)
    for (const { day, from, root } of roots) {
      const body = known.get(recordName({ organization_id: organization_id ?? '', day, from }))
      if (body !== undefined) body.root = root
    }
  }
  return known
}

function bodyOf<Body>({ row }: Proven): Body {
  return JSON.parse((JSON.parse(row) as { body: string }).body) as Body
}

function checkRequests(
  { head, requests }: Trail,
  days: ReadonlyMap<string, UsageDayBody>,
  found: TrailCheck,
  report: (problem: string) => void,
): void {
  const tokens = new Set(found.exchanges.map(({ access_token_id: id }) => id))
  const seen = new Set<string>()
  const shown = new Map<string, KeyDay>()
  for (const request of requests) {
    const row = JSON.parse(request.row) as LedgerRow
    const problem = requestProblem(request, row, head, days, seen)
    if (problem !== undefined) {
      report(`the request ${row.request_id}: ${problem}`)
      continue
    }
    found.requests.push({ ...row, day: request.day, isOfExchange: tokens.has(row.access_token_id) })
    if (request.day === null) {
      found.open += 1
      continue
    }
    found.proven.requests += 1
    found.proven.tokens += row.total_tokens ?? 0
    found.proven.nanodollars += row.cost_nanodollars ?? 0
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

/** Why a row of the ledger counts for nothing; undefined if it is proven, or its day is open. */
function requestProblem(
  request: TrailRequest,
  row: LedgerRow,
  { subject, issuer_id: issuerId, organization_id }: TrailHead,
  days: ReadonlyMap<string, UsageDayBody>,
  seen: Set<string>,
): string | undefined {
  const { day, from, index } = request
  if (row.subject !== subject || row.issuer_id !== issuerId || row.organization_id !== organization_id)
    return 'it is of another subject'
  if (day === null) return undefined
  const name = recordName({ organization_id, day, from })
  const record = days.get(name)
  if (record === undefined) return `no proof brings the totals of ${day} along`
  const place = `${name} ${index}`
  if (seen.has(place)) return 'it is there twice'
  seen.add(place)
  if (new Date(row.at).toISOString().slice(0, 10) !== day) return 'it is of another day'
  return isInDay(record, request) ? undefined : `the ledger of ${day} does not have it`
}
