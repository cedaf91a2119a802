// `latchkey archive`: moves old rows of the audit log and the ledger into files, lists the files, and checks them.
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { archiveKinds } from '../db/schema/archive-kinds.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { type Arguments, command, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { momentText, wholeNumber } from './shared/option-values.ts'
import { moment, printable } from './shared/render.ts'
import { drawReport } from './shared/reports.ts'
import { drawWork, type RunningWork, statusOption } from './shared/running-work.ts'
import { table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type Archives = OperationResponse<'archive.list'>['data']
type Verification = OperationResponse<'archive.verify'>

export function archiveCommand(): Command {
  const made = command('archive', 'Move old exchanges and requests from the database into files', [
    'archive --before 2026-01-01 --to /var/lib/latchkey/archive',
    'archive --before 90d --records usage --json',
    'archive --status',
    'archive list',
    'archive verify',
  ])
    .option('--before <time>', 'archive rows older than this time, such as 2026-01-01 or 90d; required', momentText)
    .option('--to <folder>', 'existing folder for the files (default: LATCHKEY_ARCHIVE_DIR)', (path) => resolve(path))
    .addOption(recordsOption())
    .option(...statusOption)
    .addHelpText(
      'after',
      `
Each file is read back and compared before its rows leave the database. An interrupted run loses nothing: the next one finishes it. Daily
totals stay, so budgets do not change. Only one run can be in progress. Exit code 0 if everything that is due was archived, 1 if not.`,
    )
  const run = operationCommand(
    made,
    ({ options: { status } }): 'archive.run' | 'server.work' => (status === true ? 'server.work' : 'archive.run'),
    ({ options: { before, to, records, status } }) => {
      if (status === true) return {}
      // Commander would require the option of the subcommands too.
      if (before === undefined) throw new Fault('usage', '--before <time> must be given; see: latchkey archive --help')
      return { before, to, kind: records }
    },
    ({ data }, { options }) => {
      if (options.status === true) return drawWork({ data } as RunningWork)
      return data.length === 0 ? 'No rows are that old' : draw(data as Archives)
    },
  )
  return run.addCommand(listCommand()).addCommand(verifyCommand())
}

function recordsOption(): Option {
  return new Option('--records <records>', 'only the audit log or only the ledger').choices(archiveKinds)
}

function listCommand(): Command {
  const made = command('list', 'List the archives, newest first', [
    'archive list',
    'archive list --records usage --json',
  ])
    .addOption(recordsOption())
    .option('--limit <rows>', 'maximum number of archives (default: 50)', wholeNumber)
    .option('--before-id <id>', 'only archives before this id, for the next page', wholeNumber)
  return operationCommand(
    made,
    'archive.list',
    ({ options: { records, limit, beforeId } }) => ({ kind: records, limit, before_id: beforeId }),
    ({ data }, given) => draw(data, given),
  )
}

function verifyCommand(): Command {
  const made = command('verify', 'Read every archive and compare it with its manifest and the database', [
    'archive verify',
    'archive verify --from /mnt/cold-storage --json',
  ])
    .option('--from <folder>', 'folder that holds the files now (default: where they were written)', (path) =>
      resolve(path),
    )
    .addOption(recordsOption())
    .addHelpText('after', '\nExit code 0 if every file is intact, 1 if one is missing or damaged.')
  return operationCommand(
    made,
    'archive.verify',
    ({ options: { from, records } }) => ({ from, kind: records }),
    drawVerified,
    {
      isNegative: ({ ok }) => !ok,
    },
  )
}

const nodeColumn: [string, (row: Archives[number]) => string] = ['NODE', (row) => row.node ?? '']

/** When the entries of its rows left the audit log: from then on, only the file proves them. */
const prunedColumn: [string, (row: Archives[number]) => string] = ['PRUNED (UTC)', (row) => moment(row.pruned_at)]

function draw(rows: Archives, given: Arguments = { words: [], options: {} }): string {
  return drawReport(
    rows,
    [
      ['KIND', (row) => row.kind],
      ['STATE', (row) => row.state, stateTone],
      ['FROM (UTC)', (row) => moment(row.from)],
      ['TO (UTC)', (row) => moment(row.to)],
      ['ROWS', (row) => row.rows],
      ['BYTES', (row) => row.bytes],
      ['FILE', (row) => row.file],
      ['FOLDER', (row) => row.folder],
      ...(rows.some(({ node }) => node !== null) ? [nodeColumn] : []),
    ],
    given,
  )
}

function drawVerified({ ok, data, unknown_files, elsewhere }: Verification): string {
  const rows = data.map((row) => ({ ...row, result: row.ok ? 'ok' : 'failed' }))
  const failed = data.flatMap(({ problem }) => (problem === null ? [] : [printable(problem)]))
  return [
    table(
      rows,
      [
        ['RESULT', (row) => row.result],
        ['ROWS', (row) => row.rows],
        ...(rows.some(({ pruned_at }) => pruned_at !== null) ? [prunedColumn] : []),
        ['FILE', (row) => row.file],
        ['FOLDER', (row) => row.folder],
      ],
      elsewhere.length === 0 ? 'No archives yet' : 'No archives on this machine',
    ),
    ...(ok ? [] : failed),
    ...unknown_files.map((path) => `This database did not write ${printable(path)}`),
    ...elsewhere.map(({ file, node }) => `${printable(file)} is on ${printable(node ?? '')}: verify it there`),
  ].join('\n')
}

if (import.meta.main) await runAlone(archiveCommand())
