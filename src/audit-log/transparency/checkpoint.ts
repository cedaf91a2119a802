// Checkpoints (C2SP tlog-checkpoint 1.0): the text of a note that names a log, its size and the root of its tree.
import { hashBytes } from './merkle.ts'
import { checkSignature, type Note, parseBase64, parseNote, type VerifierKey } from './note.ts'

export type Checkpoint = { origin: string; size: number; root: Uint8Array }

/** A checkpoint as it was signed. */
export type SignedCheckpoint = Checkpoint & { note: Note }

/** The text to sign. */
export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`
}

/** Parses a note whose text is a checkpoint, without checking its signatures; undefined for any other text. */
export function parseCheckpoint(text: string): SignedCheckpoint | undefined {
  const note = parseNote(text)
  const [origin = '', size = '', encoded = '', ...rest] = note?.text.split('\n') ?? []
  const root = parseBase64(encoded)
  const isWhole = rest.at(-1) === '' && !rest.slice(0, -1).includes('')
  const isSize = /^(0|[1-9][0-9]{0,15})$/.test(size) && Number.isSafeInteger(Number(size))
  if (note === undefined || origin === '' || !isSize || root?.length !== hashBytes || !isWhole) return undefined
  return { origin, size: Number(size), root, note }
}

/**
 * Parses a checkpoint and checks that `key` has signed it and that it belongs to the log of that name.
 * @returns the checkpoint, or why it is not one
 */
export function openCheckpoint(
  text: string,
  key: VerifierKey,
): SignedCheckpoint | 'malformed' | 'other_log' | 'unsigned' | 'wrong_signature' {
  const checkpoint = parseCheckpoint(text)
  if (checkpoint === undefined) return 'malformed'
  if (checkpoint.origin !== key.name) return 'other_log'
  const signature = checkSignature(checkpoint.note, key)
  if (signature === 'missing') return 'unsigned'
  return signature === 'wrong' ? 'wrong_signature' : checkpoint
}
