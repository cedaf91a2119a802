// `latchkey doctor`: what an operator should act on, by exit code, for sites without a metrics system.
import type { Command } from 'commander'
import { latestSchema } from '../db/schema/migrate.ts'
import { inOrder } from '../src/admin/doctor/findings.ts'
import { judgeSchema } from '../src/admin/doctor/server-rules.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { callOperation } from './shared/call-operation.ts'
import { command, dependencies, givenTo, print, readConfig, runAlone, withSettings } from './shared/command-line.ts'
import { exitCodeFailed } from './shared/program.ts'
import { createProgress } from './shared/progress.ts'
import { printable } from './shared/render.ts'

type Examination = OperationResponse<'doctor.examine'>
type Finding = Examination['findings'][number]

export function doctorCommand(): Command {
  const made = command('doctor', 'List what needs attention; exit code 0 if nothing is urgent, 1 if something is', [
    'doctor',
    'doctor --json',
    'doctor --organization research',
  ]).addHelpText(
    'after',
    `
Levels:
  error    something does not work, or soon will not (exit code 1)
  warning  it will fail if nothing is done (exit code 1)
  note     worth a look (exit code 0)

Run it every day from a timer, and send its output to the operators when it fails.`,
  )
  made.option('--organization <organization>', 'examine one organization, by name or id (default: all, and the server)')
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const { organization } = options
    const { onProgress, end } = createProgress(process.stderr, dependencies.monotonic)
    const input = { organization }
    const config = readConfig(options)
    const call = callOperation(config, dependencies, 'doctor.examine', input, { onProgress })
    const found = withOwnFindings(await call.finally(end))
    print(options.json === true ? JSON.stringify(found, null, 2) : draw(found.findings))
    if (found.findings.some(isUrgent)) process.exitCode = exitCodeFailed
  })
}

/** The server can be older than this program, which starts next. */
function withOwnFindings(found: Examination): Examination {
  if (found.schema === null) return found
  return { ...found, findings: inOrder([...judgeSchema(found.schema, latestSchema), ...found.findings]) }
}

function isUrgent({ level }: Finding): boolean {
  return level !== 'note'
}

function draw(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'Nothing needs attention'
  return findings
    .map(({ level, area, message, action }) =>
      [`${level.padEnd(7)}  ${area}: ${printable(message)}`, `         ${printable(action)}`].join('\n'),
    )
    .join('\n')
}

if (import.meta.main) await runAlone(doctorCommand())
