// Compares archived exchanges with the entries of a log in a folder: anyone who has both needs no database.
import { linesOf } from '../archive/archive-file.ts'
import { readSaltedLine, type SaltedLine } from '../archive/salted-lines.ts'
import { archivedLeafHash, commitmentOf } from './archived-tile.ts'
import { isSameHash, perfectHash } from './transparency/merkle.ts'
import { tileWidth } from './transparency/tiles.ts'

export type ArchiveCheck = {
  /** Takes the entries from `first` on, in their order, up to the next call. */
  check: (first: number, entries: readonly Uint8Array[]) => Promise<void>
  /** Takes the tile from `first` on, whose entries were pruned: its hash. */
  checkPruned: (first: number, hash: Uint8Array) => Promise<void>
  /** Reports lines that no entry was there for. Returns how many lines fit theirs. */
  end: () => Promise<number>
}

/** Lines of an archive are in the order of their leaves. Those that the log does not cover say nothing, and are left out. */
export function createArchiveCheck(files: readonly string[], report: (problem: string) => void): ArchiveCheck {
  const archives = files.map((file) => ({
    file,
    lines: saltedLinesOf(file, report),
    next: undefined as SaltedLine | undefined,
    last: -1,
    isBegun: false,
  }))
  let matched = 0

  async function advance(archive: (typeof archives)[number]): Promise<void> {
    archive.isBegun = true
    archive.last = archive.next?.leaf ?? -1
    archive.next = (await archive.lines.next()).value ?? undefined
    if (archive.next !== undefined && archive.next.leaf <= archive.last)
      report(`${archive.file}: the row of entry ${archive.next.leaf} is there twice, or out of order`)
  }

  /** The lines of each archive up to a leaf. */
  async function* linesBefore(end: number): AsyncGenerator<{ file: string; line: SaltedLine }> {
    for (const archive of archives) {
      if (!archive.isBegun) await advance(archive)
      while (archive.next !== undefined && archive.next.leaf < end) {
        yield { file: archive.file, line: archive.next }
        await advance(archive)
      }
    }
  }

  return {
    check: async (first, entries) => {
      for await (const { file, line } of linesBefore(first + entries.length)) {
        const entry = entries[line.leaf - first]
        const commitment = commitmentOf(line).toString('hex')
        if (entry === undefined || !Buffer.from(entry).includes(`"commit":"${commitment}"`))
          report(`${file}: the row of entry ${line.leaf} is not the one that was logged`)
        // A row that was erased has no salt, and nothing opens its entry.
        else if (line.salt !== undefined) matched += 1
      }
    },
    checkPruned: async (first, hash) => {
      const leaves = new Map<number, Uint8Array>()
      let [from, opened] = ['', 0]
      for await (const { file, line } of linesBefore(first + tileWidth)) {
        from = file
        if (line.salt !== undefined) opened += 1
        leaves.set(line.leaf, archivedLeafHash(line))
      }
      if (leaves.size === 0) return
      const range = `pruned entries ${first} to ${first + tileWidth - 1}`
      const known = Array.from({ length: tileWidth }, (_, index) => leaves.get(first + index))
      const isWhole = known.every((each): each is Uint8Array => each !== undefined)
      if (!isWhole)
        report(`${from}: it has ${leaves.size} of the ${tileWidth} rows of the ${range}, which nothing can check`)
      else if (isSameHash(perfectHash(known), hash)) matched += opened
      else report(`${from}: the rows of the ${range} are not the ones that were logged`)
    },
    end: async () => {
      for (const { file, next } of archives)
        if (next !== undefined) report(`${file}: the log has no entry ${next.leaf}`)
      return matched
    },
  }
}

async function* saltedLinesOf(file: string, report: (problem: string) => void): AsyncGenerator<SaltedLine, undefined> {
  try {
    for await (const text of linesOf(file)) {
      const line = readSaltedLine(text)
      if (line !== undefined) yield line
    }
  } catch (error) {
    report(`${file}: ${(error as Error).message}`)
  }
}
