// `latchkey audit verify`: checks a proof or a folder with the verifier key alone, or the database itself.
import { existsSync, statSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { type CheckedProof, checkRowProof, type ProofProblem } from '../src/audit-log/row-proof.ts'
import { checkTrailFolder, isTrail } from '../src/audit-log/trail-folder.ts'
import { parseVerifierKey, type VerifierKey } from '../src/audit-log/transparency/note.ts'
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
import { moment, printable } from './shared/render.ts'

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
    .option('--witness <verifier-key...>', 'verifier keys of witnesses, or files with one each', verifierKeys)
    .option('--against <file...>', 'checkpoints that were kept elsewhere')
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
  const key = parseVerifierKey(existsSync(text) ? readTextFile(text).trim() : text)
  if (key === undefined)
    throw new InvalidArgumentError('use the text that `latchkey audit key` shows, or a file with it')
  return [...before, key]
}

function keysOf({ options }: Arguments, name: 'verifierKey' | 'witness'): VerifierKey[] {
  return (options[name] ?? []) as unknown as VerifierKey[]
}

function checkpointsOf({ options }: Arguments): { name: string; text: string }[] {
  const files = (options.against ?? []) as unknown as string[]
  return files.map((name) => ({ name, text: readTextFile(name) }))
}

async function verifyDatabase(given: Arguments, onProgress: OnProgress): Promise<Verdict> {
  const input = { against: checkpointsOf(given) }
  const response = await callOperation(readConfig(given.options), dependencies, 'audit.verify', input, { onProgress })
  return { isRight: response.ok, response, drawn: drawDatabase(response) }
}

async function verifyPath(path: string, given: Arguments, onProgress: OnProgress): Promise<Verdict> {
  const [keys, witnessKeys] = [keysOf(given, 'verifierKey'), keysOf(given, 'witness')]
  const [key] = keys
  if (key === undefined)
    throw new Fault('usage', 'Give the verifier key of the log with --verifier-key', {
      hint: ': its administrator gets it with `latchkey audit key`',
    })
  if (!existsSync(path)) throw new Fault('usage', `There is no file or folder ${JSON.stringify(path)}`)
  if (!statSync(path).isDirectory()) return verifyProof(readTextFile(path), keys, witnessKeys)
  if (await isTrail(path)) return verifyTrail(path, keys, witnessKeys)
  const archives = (given.options.archive ?? []) as unknown as string[]
  const against = checkpointsOf(given)
  const found = await verifyFolder({ folder: path, keys, witnessKeys, against, archives }, onProgress)
  const isRight = found.problems.length === 0
  const { checkpointsPruned, ...counts } = found
  const response = { ok: isRight, ...counts, checkpoints_pruned: checkpointsPruned }
  return { isRight, response, drawn: drawFolder(found) }
}

async function verifyTrail(folder: string, keys: VerifierKey[], witnessKeys: VerifierKey[]): Promise<Verdict> {
  try {
    const { head, ...check } = await checkTrailFolder(folder, keys, witnessKeys)
    const isRight = check.problems.length === 0
    return { isRight, response: trailResponse(head, check), drawn: drawTrail(head, check) }
  } catch (error) {
    const problem = `The trail is damaged: ${(error as Error).message}`
    return { isRight: false, response: { ok: false, problems: [problem] }, drawn: `✗ ${printable(problem)}` }
  }
}

function verifyProof(text: string, keys: VerifierKey[], witnessKeys: VerifierKey[]): Verdict {
  const results = keys.map((key) => checkRowProof(text, key, witnessKeys))
  const found = results.find(({ problem }) => problem === undefined) ?? (results[0] as CheckedProof)
  if (found.problem !== undefined)
    return { isRight: false, response: { ok: false, problem: found.problem }, drawn: `✗ ${explained[found.problem]}` }
  const { problem: _, row, request, ...proven } = found
  const ofDay = request === undefined ? {} : { request: { ...request, row: JSON.parse(request.row) as unknown } }
  const response = { ok: true, ...proven, row: JSON.parse(row) as unknown, ...ofDay }
  return { isRight: true, response, drawn: drawProof(found) }
}

const explained: Record<ProofProblem, string> = {
  malformed: 'The file is not a proof, or it is damaged',
  other_log: 'The proof belongs to a log that the key does not sign',
  unsigned: 'The key has not signed the checkpoint of this proof',
  wrong_signature: 'The signature of the checkpoint is wrong',
  no_row: 'The proof does not bring its row along',
  other_row: 'The row is not the one that the log has',
  other_request: 'The day does not have this request as it is here',
  not_included: 'The checkpoint does not have this entry',
  wrong_cosignature: 'The signature of a witness is wrong',
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

function drawWitnesses(witnesses: { name: string; at: number }[]): string[] {
  return witnesses.map(
    ({ name, at }) => `✓ Cosigned by ${printable(name)} at ${moment(new Date(at).toISOString())} UTC`,
  )
}

function drawFolder(found: FolderCheck): string {
  const { problems, origin, size, checkpoints, kinds, pruned, checkpointsPruned, archived, witnesses } = found
  const counts = Object.entries(kinds).map(([kind, count]) => `${count} ${kind}`)
  return [
    `${problems.length === 0 ? '✓' : '✗'} ${printable(origin ?? 'no log')}: ${size} entries (${counts.join(', ')})`,
    `  It grew from ${checkpoints} older checkpoints`,
    ...(pruned === 0
      ? []
      : [
          `  ${pruned} entries were pruned, as the log says; ${checkpointsPruned} checkpoints among them were not compared`,
        ]),
    ...(archived === 0 ? [] : [`  ${archived} archived exchanges are the ones that were logged`]),
    ...drawWitnesses(witnesses),
    ...problems.map((problem) => `  ✗ ${printable(problem)}`),
  ].join('\n')
}

function drawDatabase(found: OperationResponse<'audit.verify'>): string {
  const { ok, size, rows, archived, erased, pruned, checkpoints, checkpoints_pruned, uncovered, days, problems } = found
  const more = [
    ...(days > 0 ? [`${days} totals of days compared with the ledger`] : []),
    ...(archived > 0 ? [`${archived} are in archives`] : []),
    ...(erased > 0 ? [`${erased} were erased`] : []),
    ...(pruned > 0
      ? [`${pruned} were pruned, with ${checkpoints_pruned} checkpoints among them; archives have their rows`]
      : []),
    ...(uncovered > 0 ? [`${uncovered} rows are newer than the log`] : []),
  ]
  return [
    `${ok ? '✓' : '✗'} ${size} entries, ${rows} rows compared, ${checkpoints} checkpoints${more.map((each) => `; ${each}`).join('')}`,
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
