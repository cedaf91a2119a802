// A proof that the audit log has a row: a tlog-proof file that brings the row, its salt and its entry along, so that its reader needs nothing
// but the verifier key. The proof of a request is that of the record of its day, with its place in the tree of the day. Rules only.

import { checkShape, type } from '../values/shape.ts'
import { type DayPlace, dayPlace, openDayPlace, type RequestInDay } from './day-place.ts'
import { commitTo } from './entry.ts'
import { openCheckpoint } from './transparency/checkpoint.ts'
import { hashLeaf, isIncluded } from './transparency/merkle.ts'
import { checkSignature, type VerifierKey } from './transparency/note.ts'
import { checkpointIn, formatProof, parseProof } from './transparency/proof.ts'

/** What a proof has about its row: the text that the tree holds, and what opens its commitment. `request`: of the day of which the row is the record. */
export type ProvenRow = { entry: string; salt: string; row: string; request?: DayPlace | undefined }

export type RowProof = { index: number; hashes: Uint8Array[]; checkpoint: string; row: ProvenRow }

export function formatRowProof({ index, hashes, checkpoint, row }: RowProof): string {
  return formatProof({ extra: Buffer.from(JSON.stringify(row)), index, hashes, checkpoint })
}

const rowShape = type({
  ...{ '+': 'reject', entry: 'string', salt: /^[0-9a-f]{32}$/, row: 'string' },
  'request?': dayPlace,
})
const entryShape = type({ '+': 'reject', v: '1', kind: 'string', at: 'string', commit: /^[0-9a-f]{64}$/ })

/** Why a proof proves nothing, in words that follow the name of its file. */
export const proofProblems = {
  empty: 'it is empty',
  malformed: 'it is not a proof, or it is damaged',
  other_log: 'it belongs to a log that the verifier key does not sign',
  unsigned: 'the verifier key has not signed its checkpoint',
  wrong_signature: 'the signature of its checkpoint is wrong',
  no_row: 'it does not bring its row along',
  other_row: 'its row is not the one that the log has',
  other_request: 'its day does not have the request as it is here',
  not_included: 'its checkpoint does not have this entry',
  wrong_cosignature: 'the signature of a witness is wrong',
  no_witness: 'no witness of --witness has signed its checkpoint',
} as const
export type ProofProblem = keyof typeof proofProblems

export type CheckedProof =
  | { problem: ProofProblem }
  | {
      problem: undefined
      origin: string
      index: number
      size: number
      kind: string
      /** ISO 8601. */
      at: string
      /** The text of the row. */
      row: string
      /** The request that the row, the record of a day, has; undefined if the proof is of the row itself. */
      request: RequestInDay | undefined
      witnesses: { name: string; at: number }[]
    }

/** Checks everything that a proof says, with the key of the log and those of witnesses, of which at least one must have signed. */
export function checkRowProof(text: string, key: VerifierKey, witnessKeys: readonly VerifierKey[] = []): CheckedProof {
  const proof = parseProof(text)
  if (proof === undefined) return { problem: text.trim() === '' ? 'empty' : 'malformed' }
  const checkpoint = openCheckpoint(checkpointIn(text), key)
  if (typeof checkpoint === 'string') return { problem: checkpoint }
  const proven = parseRow(proof.extra)
  if (proven === undefined) return { problem: 'no_row' }
  if (!isOpened(proven)) return { problem: 'other_row' }
  const { entry, said, row, request: place } = proven
  const request = place && openDayPlace(row, place)
  if (place !== undefined && (request === undefined || said.kind !== 'usage_day')) return { problem: 'other_request' }
  const { origin, size, root, note } = checkpoint
  const { index, hashes } = proof
  const leafHash = hashLeaf(Buffer.from(entry))
  if (!isIncluded({ index, size, root, leafHash, proof: hashes })) return { problem: 'not_included' }
  const witnesses: { name: string; at: number }[] = []
  for (const witness of witnessKeys) {
    const signature = checkSignature(note, witness)
    if (signature === 'wrong') return { problem: 'wrong_cosignature' }
    if (signature !== 'missing') witnesses.push({ name: witness.name, at: signature.at ?? 0 })
  }
  if (witnessKeys.length > 0 && witnesses.length === 0) return { problem: 'no_witness' }
  return { problem: undefined, origin, index, size, kind: said.kind, at: said.at, row, request, witnesses }
}

/** What a proof has about its row, if the salt opens its entry; undefined otherwise. Whether the log has the entry is another question. */
export function openRow(extra: Uint8Array | undefined): OpenedRow | undefined {
  const proven = parseRow(extra)
  return proven !== undefined && isOpened(proven) ? proven : undefined
}

type OpenedRow = ProvenRow & { said: typeof entryShape.infer }

function isOpened({ salt, row, said }: OpenedRow): boolean {
  return commitTo(Buffer.from(salt, 'hex'), row).toString('hex') === said.commit
}

function parseRow(extra: Uint8Array | undefined) {
  try {
    const proven = checkShape(rowShape, JSON.parse(Buffer.from(extra ?? []).toString()))
    return { ...proven, said: checkShape(entryShape, JSON.parse(proven.entry)) }
  } catch {
    return undefined
  }
}
