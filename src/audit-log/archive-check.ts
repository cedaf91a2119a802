// Compares archived exchanges with the entries of a log in a folder: anyone who has both needs no database.
import { linesOf } from '../archive/archive-file.ts'
import { readSaltedLine } from '../archive/salted-lines.ts'
import { commitTo } from './entry.ts'

export type ArchiveCheck = {
  /** Takes the entries from `first` on, in their order, up to the next call. */
  check: (first: number, entries: readonly Uint8Array[]) => Promise<void>
  /** Reports lines that no entry was there for. Returns how many lines fit theirs. */
  end: () => Promise<number>
}

type Line = NonNullable<ReturnType<typeof readSaltedLine>>

/** Lines of an archive are in the order of their leaves. Those that the log does not cover say nothing, and are left out. */
export function createArchiveCheck(files: readonly string[], report: (problem: string) => void): ArchiveCheck {
  const archives = files.map((file) => ({
    file,
    lines: saltedLinesOf(file, report),
    next: undefined as Line | undefined,
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

  return {
    check: async (first, entries) => {
      for (const archive of archives) {
        if (!archive.isBegun) await advance(archive)
        while (archive.next !== undefined && archive.next.leaf < first + entries.length) {
          const { leaf, salt, line } = archive.next
          const entry = entries[leaf - first]
          const commitment = commitTo(salt, line).toString('hex')
          if (entry !== undefined && Buffer.from(entry).includes(`"commit":"${commitment}"`)) matched += 1
          else report(`${archive.file}: the row of entry ${leaf} is not the one that was logged`)
          await advance(archive)
        }
      }
    },
    end: async () => {
      for (const { file, next } of archives)
        if (next !== undefined) report(`${file}: the log has no entry ${next.leaf}`)
      return matched
    },
  }
}

async function* saltedLinesOf(file: string, report: (problem: string) => void): AsyncGenerator<Line, undefined> {
  try {
    for await (const text of linesOf(file)) {
      const line = readSaltedLine(text)
      if (line !== undefined) yield line
    }
  } catch (error) {
    report(`${file}: ${(error as Error).message}`)
  }
}
