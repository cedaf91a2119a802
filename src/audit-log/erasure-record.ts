// What the audit log keeps of an erasure: who erased how much and why, and what has no salt since. It does not say whose rows they were.
import { createHash } from 'node:crypto'

export type ErasureBody = {
  because: string
  by: { actor: string; key_id: string | null; os_user: string | null }
  organization_id: string
  issuer_id: string
  exchanges: number
  /** The leaves of these exchanges that lost their salts. */
  leaves: number[]
  /** Of the lines that the rows of these leaves have since, each with a newline: they are held to it. */
  rows_sha256: string
  usage: number
  /** The roots that the records of days of this organization have without these rows. A record is named by its day and first row. */
  days: { day: string; from: number; root: string }[]
}

/** What all records of one erasure have in common. */
export type ErasureReason = Pick<ErasureBody, 'because' | 'by' | 'organization_id' | 'issuer_id'>

/** Adds up the lines of rows in the order of their leaves. */
export function createRowsDigest(): { add: (line: string) => void; end: () => string } {
  const digest = createHash('sha256')
  return { add: (line) => void digest.update(`${line}\n`), end: () => digest.digest('hex') }
}
