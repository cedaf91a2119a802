// An archive run that is killed at any moment loses no row and stores none twice: whatever is on disk, the next run continues.
import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readArchives } from '../support/archives.ts'
import { createChance, killsOr } from '../support/chance.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { briefRuntime, temporaryFolder } from '../support/latchkey.ts'

const chance = createChance('archive-kill')
const kills = killsOr(4)
const rowsPerRound = 900
const process_ = join(import.meta.dirname, '../support/archive-process.ts')
const tables = { exchanges: 'exchange_audit', usage: 'usage' } as const

/** Runs the process until it ends or has printed this many lines, and kills it then. Returns whether it added its rows. */
async function run(
  args: string[],
  linesUntilKill = Number.POSITIVE_INFINITY,
): Promise<{ added: boolean; done: boolean }> {
  const env = { ...process.env, ...briefRuntime }
  const child = Bun.spawn([process.execPath, process_, ...args], { env, stdout: 'pipe', stderr: 'inherit' })
  let text = ''
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += piece
    const steps = text.split('\n').length - 1 - (text.startsWith('added') ? 1 : 0)
    if (steps >= linesUntilKill) child.kill('SIGKILL')
  }
  await child.exited
  return { added: text.includes('added'), done: text.includes('done') }
}

/** Checks the files against the table of archives, and that every row is in the database, in a verified file, or on its way. */
function check(path: string, folder: string, added: number): void {
  for (const kind of ['exchanges', 'usage'] as const) {
    const [integrity, kept = [], archives = []] = readDatabaseFile(
      path,
      'pragma integrity_check',
      `select id from ${tables[kind]}`,
      `select state, file, sha256 from archives where kind = '${kind}' and state <> 'writing'`,
    )
    expect(integrity).toEqual([{ integrity_check: 'ok' }])
    const files = new Map(readArchives(folder).map((archive) => [archive.file, archive]))
    const inFiles = (state: string) =>
      archives
        .filter((archive) => archive.state === state)
        .flatMap(({ file, sha256 }) => {
          expect(
            createHash('sha256')
              .update(readFileSync(join(folder, String(file))))
              .digest('hex'),
          ).toBe(String(sha256))
          return (files.get(String(file))?.rows ?? []).map(({ id }) => Number(id))
        })
    const [finished, verified] = [inFiles('finished'), inFiles('verified')]
    const left = kept.map(({ id }) => Number(id))
    // Only rows of an archive that is verified and not finished may be in both places.
    expect(new Set([...finished, ...verified]).size).toBe(finished.length + verified.length)
    expect(finished.filter((id) => left.includes(id))).toEqual([])
    const everywhere = new Set([...finished, ...verified, ...left])
    expect(everywhere.size).toBe(Math.max(...everywhere))
    expect(everywhere.size).toBeGreaterThanOrEqual(added)
  }
}

test(`a run that is killed ${kills} times loses no row and stores none twice`, async () => {
  const temporary = temporaryFolder()
  const [path, folder] = [join(temporary.path, 'latchkey.db'), join(temporary.path, 'archive')]
  mkdirSync(folder)
  const first = Math.floor(chance() * 53)
  let added = 0
  let killed = 0
  try {
    for (let round = 0; round < kills; round++) {
      // Spreads the kills over a run, whose number of steps varies.
      const lines = 1 + ((first + round * 7_919) % 53)
      const outcome = await run([path, folder, round === 0 ? 'create' : 'open', String(rowsPerRound)], lines)
      if (outcome.added) added += rowsPerRound
      if (!outcome.done) killed += 1
      check(path, folder, added)
    }
    expect(killed).toBeGreaterThan(kills / 2)
    expect(await run([path, folder, 'open', '1'])).toEqual({ added: true, done: true })
    check(path, folder, added + 1)
    for (const table of Object.values(tables))
      expect(readDatabaseFile(path, `select count(*) as rows from ${table}`)).toEqual([[{ rows: 1 }]])
    // No file is left that the database does not know, and none under a temporary name.
    const known = readDatabaseFile(path, 'select file from archives')[0]?.map(({ file }) => String(file)) ?? []
    expect(
      readdirSync(folder)
        .filter((name) => name.endsWith('.gz'))
        .toSorted(),
    ).toEqual(known.toSorted())
    expect(readdirSync(folder).filter((name) => name.endsWith('.partial'))).toEqual([])
  } finally {
    temporary.remove()
  }
}, 120_000)
