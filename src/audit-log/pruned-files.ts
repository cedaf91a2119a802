// What a folder of the log says was pruned: proofs of records, each of which must be in the log that the folder has.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { prunedFolder } from './folder.ts'
import { type PrunedRange, parsePruning, rangeWith } from './pruning-record.ts'
import { openRow } from './row-proof.ts'
import { parseProof } from './transparency/proof.ts'
import { tileWidth } from './transparency/tiles.ts'

export type PrunedCheck = {
  /** Reports whether a file says that the tile with a leaf was pruned. */
  has: (leaf: number) => boolean
  /** Takes all entries, in their order: those of the records are among them. */
  check: (first: number, entries: readonly Uint8Array[]) => void
  /** Reports files that were relied on and whose record the log does not have. */
  end: () => void
}

type Claim = { file: string; index: number; entry: string; ranges: PrunedRange[]; isUsed: boolean; isLogged: boolean }

/** A record stands for itself: that its entry is in the tree is checked with the tree. */
export async function readPruned(folder: string, report: (problem: string) => void): Promise<PrunedCheck> {
  const names: string[] = await readdir(join(folder, prunedFolder)).catch(() => [])
  const claims: Claim[] = []
  for (const name of names.toSorted()) {
    const file = `${prunedFolder}/${name}`
    const claim = readClaim(await readFile(join(folder, file), 'utf8').catch(() => ''))
    if (claim === undefined) report(`${file}: it is damaged`)
    else claims.push({ file, ...claim, isUsed: false, isLogged: false })
  }
  const ranges = claims
    .flatMap((claim) => claim.ranges.map((range) => ({ ...range, claim })))
    .toSorted((one, other) => one.first - other.first)
  const waiting = claims.toSorted((one, other) => one.index - other.index)
  return {
    has: (leaf) => {
      const range = rangeWith(ranges, leaf)
      if (range !== undefined) range.claim.isUsed = true
      return range !== undefined
    },
    check: (first, entries) => {
      while ((waiting[0]?.index ?? Number.POSITIVE_INFINITY) < first + entries.length) {
        const claim = waiting.shift() as Claim
        claim.isLogged = Buffer.from(entries[claim.index - first] ?? []).toString() === claim.entry
      }
    },
    end: () => {
      for (const {
        file,
        isUsed,
        isLogged,
        ranges: [range],
      } of claims)
        if (isUsed && !isLogged)
          report(`${file}: the log does not say that entries ${range?.first} and others were pruned: they are missing`)
    },
  }
}

function readClaim(text: string): Pick<Claim, 'index' | 'entry' | 'ranges'> | undefined {
  const proof = parseProof(text)
  const proven = openRow(proof?.extra)
  if (proof === undefined || proven?.said.kind !== 'pruning') return undefined
  try {
    const { ranges } = parsePruning((JSON.parse(proven.row) as { body: string }).body)
    // A record comes after what it says was pruned, and no tile has both.
    const isBefore = ranges.every(({ end }) => end <= proof.index - (proof.index % tileWidth))
    return isBefore ? { index: proof.index, entry: proven.entry, ranges } : undefined
  } catch {
    return undefined
  }
}
