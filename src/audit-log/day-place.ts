// The place of a request in the tree of its day: what leads from a row of the ledger to the root that the record of the day has. Rules only.
import { checkShape, type } from '../values/shape.ts'
import { hashBytes, hashLeafText, isIncluded } from './transparency/merkle.ts'
import { parseBase64 } from './transparency/note.ts'

/** `row`: the text of the ledger row. `hashes`: in base64, from its sibling up. */
export const dayPlace = type({ '+': 'reject', row: 'string', index: 'number.integer >= 0', hashes: 'string[]' })
export type DayPlace = typeof dayPlace.infer

/** What a record of a day says of its tree. */
const dayTree = type({ day: 'string', organization_id: 'string', rows: 'number.integer', root: /^[0-9a-f]{64}$/ })
export type DayTree = typeof dayTree.infer

/** Reports whether the tree of a day has the row at this place. */
export function isInDay({ rows, root }: Pick<DayTree, 'rows' | 'root'>, { row, index, hashes }: DayPlace): boolean {
  const proof = hashes.map(parseBase64).filter((hash): hash is Uint8Array => hash?.length === hashBytes)
  const leaf = { leafHash: hashLeafText(row), root: Buffer.from(root, 'hex') }
  return proof.length === hashes.length && isIncluded({ index, size: rows, proof, ...leaf })
}

/** A request, and how many its organization made on its day. */
export type RequestInDay = { day: string; index: number; rows: number; row: string }

/** Opens the place of a request with the text of a record of the log; undefined unless it is the record of its day, and has it. */
export function openDayPlace(record: string, place: DayPlace): RequestInDay | undefined {
  try {
    const { kind, body } = JSON.parse(record) as { kind: string; body: string }
    const tree = checkShape(dayTree, JSON.parse(body))
    if (kind !== 'usage_day' || !isInDay(tree, place)) return undefined
    const { at, organization_id } = JSON.parse(place.row) as { at: number; organization_id: string }
    const isOfDay = new Date(at).toISOString().startsWith(tree.day) && organization_id === tree.organization_id
    return isOfDay ? { day: tree.day, index: place.index, rows: tree.rows, row: place.row } : undefined
  } catch {
    return undefined
  }
}
