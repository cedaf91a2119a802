// What a trail consists of, and the shapes of its files.
import { checkShape, type } from '../values/shape.ts'

export const trailFormat = 'latchkey-trail/1'

/** Whose trail it is, and of which time. */
export const trailHead = type({
  '+': 'reject',
  format: `'${trailFormat}'`,
  origin: 'string',
  organization_id: 'string',
  issuer_id: 'string',
  issuer_url: 'string',
  subject: 'string',
  since: 'string | null',
  until: 'string | null',
  made_at: 'string',
})
export type TrailHead = typeof trailHead.infer

/** A row of the ledger, and its place in the tree of its day; the day is null while it is open. */
export const trailRequest = type({
  '+': 'reject',
  row: 'string',
  day: 'string | null',
  from: 'number.integer',
  index: 'number.integer',
  hashes: 'string[]',
})
export type TrailRequest = typeof trailRequest.infer

/** The proofs as texts. `changes`: of the issuer, the policies and the keys that exchanges name. */
export type Trail = {
  head: TrailHead
  exchanges: string[]
  changes: string[]
  days: string[]
  erasures: string[]
  requests: TrailRequest[]
}

/** @throws Fault `invalid` for text that is not the head of a trail */
export function parseHead(text: string): TrailHead {
  return checkShape(trailHead, JSON.parse(text))
}

/** @throws Fault `invalid` for text that is not a request of a trail */
export function parseRequest(line: string): TrailRequest {
  return checkShape(trailRequest, JSON.parse(line))
}
