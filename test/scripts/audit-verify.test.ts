// `audit verify`: what is no verifier key is refused with its reason, and so is an option that nothing would look at; and how verdicts read.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawDatabase, drawFolder, verifierKeys, verifyCommand, witnessKeys } from '../../scripts/audit-verify.ts'
import { createSignerKey } from '../../src/audit-log/transparency/note.ts'
import { checkpointIn } from '../../src/audit-log/transparency/proof.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const { text } = createSignerKey('log', 'log', Buffer.alloc(32, 1))
let temporary: ReturnType<typeof temporaryFolder>
beforeAll(() => {
  temporary = temporaryFolder()
})
afterAll(() => temporary.remove())

test('a verifier key is taken as text or from a file', () => {
  const file = join(temporary.path, 'log.vkey')
  writeFileSync(file, `${text}\n`)
  expect(verifierKeys(file, verifierKeys(text)).map((key) => key.text)).toEqual([text, text])
})

test('a missing file, a mistyped key and a file without a key have different reasons', () => {
  const file = join(temporary.path, 'other')
  writeFileSync(file, 'nothing')
  expect(() => verifierKeys(join(temporary.path, 'missing'))).toThrow('it is neither a file nor a verifier key')
  expect(() => verifierKeys(`x${text}`)).toThrow('this verifier key was mistyped')
  expect(() => verifierKeys(file)).toThrow('the file has no verifier key')
})

test('a witness is named by a key of a witness, never by that of the log', () => {
  const witness = createSignerKey('office', 'witness', Buffer.alloc(32, 2)).text
  expect(witnessKeys(witness).map((key) => key.text)).toEqual([witness])
  expect(() => witnessKeys(text)).toThrow('it is the key of a log')
})

test('the checkpoint of a proof is what follows its empty line, and a checkpoint is itself', () => {
  const checkpoint = 'log\n1\nroot\n\n— log x\n'
  expect(checkpointIn(`c2sp.org/tlog-proof@v1\nindex 0\n\n${checkpoint}`)).toBe(checkpoint)
  expect(checkpointIn(checkpoint)).toBe(checkpoint)
})

test.each(['--against', '--archive'])(
  '%s is refused beside a proof, which has nothing to compare with it',
  async (option) => {
    const [proof, other] = [join(temporary.path, 'x.tlog-proof'), join(temporary.path, 'other file')]
    writeFileSync(proof, '')
    writeFileSync(other, '')
    const asked = verifyCommand().parseAsync([proof, '--verifier-key', text, option, other], { from: 'user' })
    await expect(asked).rejects.toThrow(`${option} needs a folder of the log`)
  },
)

test('the verdict on a database counts one of each as one, and leaves out what was not found', () => {
  const of = (count: number) => ({
    ...{ ok: true, origin: 'log', problems: [], size: count, rows: count, checkpoints: count },
    ...{ archived: count, erased: count, pruned: count, checkpoints_pruned: count, uncovered: count },
    ...{ days: count, days_archived: count },
  })
  expect(drawDatabase(of(1)).split('; ')).toEqual([
    '✓ 1 entry, 1 row compared, 1 checkpoint',
    'the totals of 1 day compared with the ledger',
    'those of 1 day not: the requests are in archives',
    '1 row is in archives',
    '1 row was erased',
    '1 entry was pruned, with 1 checkpoint among them: archives have the rows',
    '1 row is newer than the log',
  ])
  expect(drawDatabase(of(2))).toContain('2 entries were pruned, with 2 checkpoints among them')
  expect(drawDatabase(of(0))).toBe('✓ 0 entries, 0 rows compared, 0 checkpoints')
})

test('so does the one on a folder', () => {
  const of = (count: number) => ({
    ...{ problems: [], origin: 'log', size: count, checkpoints: count, kinds: {}, witnesses: [] },
    ...{ pruned: count, checkpointsPruned: count, archived: count },
  })
  expect(drawFolder(of(1)).split('\n')).toEqual([
    '✓ log: 1 entry',
    '  It grew from 1 older checkpoint',
    '  1 entry was pruned, as the log says; 1 checkpoint among them was not compared',
    '  1 archived exchange is the one that was logged',
  ])
  expect(drawFolder(of(2))).toContain('2 checkpoints among them were not compared')
})
