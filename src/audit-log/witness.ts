// A witness: it remembers the newest checkpoint of a log that it has seen, and signs a newer one only if the log grew from it. It runs on
// another machine, with a folder that came by network or on a USB stick, and needs nothing of the installation.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openCheckpoint, type SignedCheckpoint } from './transparency/checkpoint.ts'
import { composeHash, consistencyParts, isConsistent, perfectHash, type Subtree } from './transparency/merkle.ts'
import { formatNote, type SignerKey, signNote, type VerifierKey } from './transparency/note.ts'
import { splitTile, tileOf, tilePath } from './transparency/tiles.ts'

/** Why a witness does not sign. */
export type WitnessRefusal = {
  refused: 'malformed' | 'other_log' | 'unsigned' | 'wrong_signature' | 'shorter' | 'inconsistent' | 'no_tiles'
}

type WitnessInput = {
  folder: string
  logKey: VerifierKey
  witness: SignerKey
  /** The newest checkpoint that it has signed of this log; undefined for the first, which it has to take as it is. */
  known: string | undefined
  /** Milliseconds since 1970 UTC. */
  now: number
}

/** Signs the checkpoint in a folder. Returns the note with the new signature. */
export async function cosign({
  folder,
  logKey,
  witness,
  known,
  now,
}: WitnessInput): Promise<{ note: string; size: number } | WitnessRefusal> {
  const text = await readFile(join(folder, 'checkpoint'), 'utf8').catch(() => '')
  const newer = openCheckpoint(text, logKey)
  if (typeof newer === 'string') return { refused: newer }
  const older = known === undefined ? undefined : openCheckpoint(known, logKey)
  if (typeof older === 'string') return { refused: older }
  const refusal = older && (await refusalOf(folder, older, newer))
  if (refusal !== undefined) return refusal
  const { text: signed, signatures } = newer.note
  const others = signatures.filter(({ name, id }) => name !== witness.name || id !== witness.id)
  return {
    note: formatNote({ text: signed, signatures: [...others, signNote(signed, witness, now)] }),
    size: newer.size,
  }
}

async function refusalOf(
  folder: string,
  older: SignedCheckpoint,
  newer: SignedCheckpoint,
): Promise<WitnessRefusal | undefined> {
  if (newer.size < older.size) return { refused: 'shorter' }
  const proof: Uint8Array[] = []
  for (const part of consistencyParts(older.size, newer.size)) {
    const hashes: Uint8Array[] = []
    for (const subtree of part) {
      const hash = await hashIn(folder, subtree, newer.size)
      if (hash === undefined) return { refused: 'no_tiles' }
      hashes.push(hash)
    }
    proof.push(composeHash(hashes))
  }
  const isGrown = older.size === 0 || isConsistent(older, newer, proof)
  return isGrown ? undefined : { refused: 'inconsistent' }
}

async function hashIn(folder: string, subtree: Subtree, size: number): Promise<Uint8Array | undefined> {
  const { tile, within } = tileOf(subtree, size)
  const bytes = await readFile(join(folder, tilePath(tile))).catch(() => undefined)
  const hashes = bytes && splitTile(bytes, tile.width)
  const width = 2 ** within.level
  return hashes && perfectHash(hashes.slice(within.index * width, (within.index + 1) * width))
}
