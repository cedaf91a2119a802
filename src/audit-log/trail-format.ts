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

const columnText = type('string | null')
/** What a trail reads of the row of a request. */
export const ledgerRow = type({
  id: 'number.integer',
  at: '0 <= number.integer <= 8640000000000000',
  ...{
    request_id: 'string',
    organization_id: 'string',
    key_id: 'string',
    endpoint: 'string',
    status: 'number.integer',
  },
  ...{
    issuer_id: columnText,
    subject: columnText,
    policy_id: columnText,
    access_token_id: columnText,
    model: columnText,
  },
  total_tokens: 'number.integer >= 0 | null',
  cost_nanodollars: 'number.integer >= 0 | null',
})
export type LedgerRow = typeof ledgerRow.infer

/** The folders of proofs. `changes`: of the issuer, of policies and keys that exchanges name, and of prices. */
export const proofFolders = ['exchanges', 'changes', 'days', 'erasures'] as const
export type ProofFolder = (typeof proofFolders)[number]

/** The text of a proof, and the file that has it, such as `changes/17.tlog-proof`. */
export type ProofFile = { file: string; text: string }
export type Trail = { head: TrailHead; requests: TrailRequest[] } & Record<ProofFolder, ProofFile[]>

/** @throws Fault `invalid` for text that is not the head of a trail */
export function parseHead(text: string): TrailHead {
  return checkShape(trailHead, JSON.parse(text))
}

/** @throws Fault `invalid` for text that is not a request of a trail */
export function parseRequest(line: string): TrailRequest {
  return checkShape(trailRequest, JSON.parse(line))
}
