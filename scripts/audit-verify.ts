// `latchkey audit verify`: checks a proof or a folder with the verifier key alone, or the database itself.
import { existsSync, statSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { type CheckedProof, checkRowProof, proofProblems } from '../src/audit-log/row-proof.ts'
import { checkTrailFolder, isTrail } from '../src/audit-log/trail-folder.ts'
import { parseVerifierKey, type VerifierKey } from '../src/audit-log/transparency/note.ts'
import { checkpointIn } from '../src/audit-log/transparency/proof.ts'
import { type FolderCheck, verifyFolder } from '../src/audit-log/verify-folder.ts'
import { Fault } from '../src/fault.ts'
import { drawTrail, trailResponse } from './audit-trail.ts'
import { callOperation } from './shared/call-operation.ts'
import {
  type Arguments,
  command,
  dependencies,
  givenTo,
  print,
  readConfig,
  withSettings,
} from './shared/command-line.ts'
import { readTextFile } from './shared/input-files.ts'
import { exitCodeFailed } from './shared/program.ts'
import { createProgress } from './shared/progress.ts'
import { counted, moment, printable } from './shared/render.ts'

export function verifyCommand(): Command {
  const made = command(
    'verify [file-or-folder]',
    'Verify a proof, a folder with a trail or the audit log, or the database itself',
    [
      'audit verify',
      'audit verify exchange.tlog-proof --verifier-key log.vkey',
      'audit verify /mnt/usb/20261126-3fa9c1d2 --verifier-key log.vkey --against office.checkpoint',
    ],
  )
    .option('--verifier-key <verifier-key...>', 'verifier keys of the log, or files with one each', verifierKeys)
    .option(
      '--witness <verifier-key...>',
      'verifier keys of witnesses, or files with one each; one must have signed',
      witnessKeys,
    )
    .option(
      '--against <file...>',
      'checkpoints or proofs that were kept elsewhere, to compare with the folder of the log',
    )
    .option('--archive <file...>', 'archives of exchanges, to compare with the folder of the log')
    .addHelpText(
      'after',
      `
A proof and a folder need --verifier-key and nothing else: neither a server nor a database. Without a file, the database is verified: each entry with
its row, each row with its entry, and the root with every checkpoint. Exit code 0 if everything is right, 1 if something differs.`,
    )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const [path] = given.words
    const { onProgress, end } = createProgress(process.stderr, dependencies.monotonic)
    const { isRight, response, drawn } = await (path === undefined
      ? verifyDatabase(given, onProgress)
      : verifyPath(path, given, onProgress)
    ).finally(end)
    print(given.options.json === true ? JSON.stringify(response, null, 2) : drawn)
    if (!isRight) process.exitCode = exitCodeFailed
  })
}

type Verdict = { isRight: boolean; response: object; drawn: string }
type OnProgress = (done: number, total: number) => void

/** Keys, or files that hold one each. */
export function verifierKeys(text: string, before: readonly VerifierKey[] = []): VerifierKey[] {
  const isFile = existsSync(text)
  const key = parseVerifierKey(isFile ? readTextFile(text).trim() : text)
  if (key !== undefined) return [...before, key]
  if (isFile) throw new InvalidArgumentError('the file has no verifier key, or one that was mistyped')
  throw new InvalidArgumentError(
    /\+[0-9a-f]{8}\+/.test(text)
      ? 'this verifier key was mistyped: use the text that `latchkey audit key` shows'
      : 'it is neither a file nor a verifier key: use the text that `latchkey audit key` shows, or a file with it',
  )
}

/** The same for witnesses: the log cannot be a witness of itself. */
export function witnessKeys(text: string, before: readonly VerifierKey[] = []): VerifierKey[] {
  const keys = verifierKeys(text, before)
  if (keys.at(-1)?.type !== 'witness')
    throw new InvalidArgumentError('it is the key of a log: use the verifier key that the witness has given you')
  return keys
}

function keysOf({ options }: Arguments, name: 'verifierKey' | 'witness'): VerifierKey[] {
  return (options[name] ?? []) as unknown as VerifierKey[]
}

function checkpointsOf({ options }: Arguments): { name: string; text: string }[] {
  const files = (options.against ?? []) as unknown as string[]
  return files.map((name) => ({ name, text: checkpointIn(readTextFile(name)) }))
}

async function verifyDatabase(given: Arguments, onProgress: OnProgress): Promise<Verdict> {
  refuseOptions(given, 'the database', ['witness', 'archive'])
  const input = { against: checkpointsOf(given) }
  const response = await callOperation(readConfig(given.options), dependencies, 'audit.verify', input, { onProgress })
  return { isRight: response.ok, response, drawn: drawDatabase(response) }
}

async function verifyPath(path: string, given: Arguments, onProgress: OnProgress): Promise<Verdict> {
  const [keys, witnesses] = [keysOf(given, 'verifierKey'), keysOf(given, 'witness')]
  const [key] = keys
  if (key === undefined)
    throw new Fault('usage', 'Give the verifier key of the log with --verifier-key', {
      hint: ': its administrator gets it with `latchkey audit key`',
    })
  if (!existsSync(path)) throw new Fault('usage', `There is no file or folder ${JSON.stringify(path)}`)
  if (!statSync(path).isDirectory()) {
    refuseOptions(given, 'a proof', ['against', 'archive'])
    return verifyProof(path, keys, witnesses)
  }
  if (await isTrail(path)) {
    refuseOptions(given, 'a trail', ['against', 'archive'])
    return verifyTrail(path, keys, witnesses)
  }
  const archives = (given.options.archive ?? []) as unknown as string[]
  const against = checkpointsOf(given)
  const found = await verifyFolder({ folder: path, keys, witnessKeys: witnesses, against, archives }, onProgress)
  const isRight = found.problems.length === 0
  const { checkpointsPruned, ...counts } = found
  const response = { ok: isRight, ...counts, checkpoints_pruned: checkpointsPruned }
  return { isRight, response, drawn: drawFolder(found) }
}

/** An option that nothing would look at is refused: who gives it counts on it. */
function refuseOptions({ options }: Arguments, what: string, names: ('against' | 'archive' | 'witness')[]): void {
  const name = names.find((each) => options[each] !== undefined)
  if (name !== undefined)
    throw new Fault('usage', `--${name} needs a folder of the log: ${what} has nothing to compare with it`)
}

async function verifyTrail(folder: string, keys: VerifierKey[], witnessKeys: VerifierKey[]): Promise<Verdict> {
  try {
    const { head, ...check } = await checkTrailFolder(folder, keys, witnessKeys)
    const isRight = check.problems.length === 0
    return { isRight, response: trailResponse(head, check), drawn: drawTrail(head, check) }
  } catch (error) {
    const problem = (error as Error).message
    return { isRight: false, response: { ok: false, problems: [problem] }, drawn: `✗ ${printable(problem)}` }
  }
}

function verifyProof(path: string, keys: VerifierKey[], witnessKeys: VerifierKey[]): Verdict {
  const text = readTextFile(path)
  const results = keys.map((key) => checkRowProof(text, key, witnessKeys))
  const found = results.find(({ problem }) => problem === undefined) ?? (results[0] as CheckedProof)
  if (found.problem !== undefined)
    return {
      isRight: false,
      response: { ok: false, problem: found.problem },
      drawn: `✗ ${printable(path)}: ${proofProblems[found.problem]}`,
    }
  const { problem: _, row, request, ...proven } = found
  const ofDay = request === undefined ? {} : { request: { ...request, row: JSON.parse(request.row) as unknown } }
  const response = { ok: true, ...proven, row: JSON.parse(row) as unknown, ...ofDay }
  return { isRight: true, response, drawn: drawProof(found) }
}

function drawProof({
  origin,
  index,
  size,
  kind,
  at,
  row,
  request,
  witnesses,
}: Extract<CheckedProof, { problem: undefined }>): string {
  return [
    `✓ Entry ${index} of ${size} in ${printable(origin)}: ${kind} of ${moment(at)} UTC`,
    ...(request === undefined
      ? []
      : [`✓ Request ${request.index + 1} of ${request.rows} that its organization made on ${printable(request.day)}`]),
    ...drawWitnesses(witnesses),
    printable(request?.row ?? row),
  ].join('\n')
}

function drawWitnesses(witnesses: { name: string; at: number; size?: number }[]): string[] {
  return witnesses.map(({ name, at, size }) => {
    const entries = size === undefined ? '' : `, of ${counted(size, 'entry', 'entries')}`
    return `✓ Cosigned by ${printable(name)} at ${moment(new Date(at).toISOString())} UTC${entries}`
  })
}

export function drawFolder(found: FolderCheck): string {
  const { problems, origin, size, checkpoints, kinds, pruned, checkpointsPruned, archived, witnesses } = found
  if (origin === undefined) return problems.map((problem) => `✗ ${printable(problem)}`).join('\n')
  const counts = Object.entries(kinds).map(([kind, count]) => `${count} ${kind}`)
  return [
    `${problems.length === 0 ? '✓' : '✗'} ${printable(origin)}: ${counted(size, 'entry', 'entries')}${counts.length === 0 ? '' : ` (${counts.join(', ')})`}`,
    ...(checkpoints === 0 ? [] : [`  It grew from ${counted(checkpoints, 'older checkpoint')}`]),
    ...(pruned === 0
      ? []
      : [
          `  ${counted(pruned, 'entry was', 'entries were')} pruned, as the log says; ${counted(checkpointsPruned, 'checkpoint among them was', 'checkpoints among them were')} not compared`,
        ]),
    ...(archived === 0
      ? []
      : [
          `  ${counted(archived, 'archived exchange is the one that was logged', 'archived exchanges are the ones that were logged')}`,
        ]),
    ...drawWitnesses(witnesses),
    ...problems.map((problem) => `  ✗ ${printable(problem)}`),
  ].join('\n')
}

export function drawDatabase(found: OperationResponse<'audit.verify'>): string {
  const { ok, size, rows, archived, erased, pruned, checkpoints, checkpoints_pruned, uncovered, problems } = found
  const { days, days_archived: daysArchived } = found
  const more = [
    ...(days > 0 ? [`the totals of ${counted(days, 'day')} compared with the ledger`] : []),
    ...(daysArchived > 0 ? [`those of ${counted(daysArchived, 'day')} not: the requests are in archives`] : []),
    ...(archived > 0 ? [`${counted(archived, 'row is', 'rows are')} in archives`] : []),
    ...(erased > 0 ? [`${counted(erased, 'row was', 'rows were')} erased`] : []),
    ...(pruned > 0
      ? [
          `${counted(pruned, 'entry was', 'entries were')} pruned, with ${counted(checkpoints_pruned, 'checkpoint')} among them: archives have the rows`,
        ]
      : []),
    ...(uncovered > 0 ? [`${counted(uncovered, 'row is', 'rows are')} newer than the log`] : []),
  ]
  return [
    `${ok ? '✓' : '✗'} ${counted(size, 'entry', 'entries')}, ${counted(rows, 'row')} compared, ${counted(checkpoints, 'checkpoint')}${more.map((each) => `; ${each}`).join('')}`,
    ...problems.map(({ problem, source, ref, leaf, at }) => {
      const place = [
        ...(source === undefined ? [] : [`${source}, id ${ref}`]),
        ...(leaf === undefined ? [] : [`entry ${leaf}`]),
        ...(at === null ? [] : [`${moment(at)} UTC`]),
      ]
      return `  ✗ ${printable(problem)}${place.length === 0 ? '' : ` (${place.join(', ')})`}`
    }),
  ].join('\n')
}
