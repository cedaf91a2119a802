// `latchkey upstreams top`: what runs, waits and rests at the inference servers, again every second.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { callOperation } from './shared/call-operation.ts'
import { command, dependencies, givenTo, print, readConfig, withSettings } from './shared/command-line.ts'
import { table } from './shared/table.ts'
import { readTerminal } from './shared/terminal.ts'

type Queue = OperationResponse<'upstreams.top'>

const intervalMilliseconds = 1_000
const clearScreen = '\u001b[H\u001b[2J\u001b[3J'

export function topCommand(): Command {
  const about = 'Show what runs and waits at the inference servers, and whose requests these are, until Ctrl-C'
  const made = command('top', about, ['upstreams top', 'upstreams top --json'])
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const config = readConfig(options)
    const read = () => callOperation(config, dependencies, 'upstreams.top', {})
    if (options.json === true) return print(JSON.stringify(await read(), null, 2))
    for (;;) {
      const text = drawQueue(await read())
      if (readTerminal().columns === undefined) return print(text)
      process.stdout.write(`${clearScreen}${text}\n`)
      await sleep(intervalMilliseconds)
    }
  })
}

/** Both tables, as of one moment. */
export function drawQueue({ at, upstreams, keys }: Queue): string {
  const servers = table(
    upstreams,
    [
      ['UPSTREAM', (row) => row.name],
      ['RUNNING', (row) => runningText(row)],
      ['WAITING', (row) => row.waiting],
      ['TOKENS/S', (row) => row.tokens_per_second],
      ['RESTS', (row) => restsText(row.rests)],
      ['PROBE', (row) => probeText(row.probe)],
    ],
    'No upstreams. To add one: latchkey upstreams add --name gpu --inference-url http://127.0.0.1:8000/v1',
  )
  const callers = table(
    keys,
    [
      ['KEY', (row) => row.name],
      ['ORGANIZATION', (row) => row.organization],
      ['RUNNING', (row) => row.running],
      ['WAITING', (row) => row.waiting],
      ['TOKENS/S', (row) => row.tokens_per_second],
    ],
    'No requests',
  )
  return [`${clockText(at)} UTC`, '', servers, '', callers].join('\n')
}

/** Such as `3 of 16`. */
export function runningText({ running, max_running: most }: { running: number | null; max_running: number | null }) {
  if (running === null) return null
  return most === null ? String(running) : `${running} of ${most}`
}

export function restsText(rests: Queue['upstreams'][number]['rests']): string {
  return rests.map(({ model, until }) => `${model === null ? '' : `${model} `}until ${clockText(until)}`).join(', ')
}

/** Null without a probe. */
export function probeText(probe: Queue['upstreams'][number]['probe']): string | null {
  if (probe === null) return null
  return probe.problem === null ? `responds in ${probe.milliseconds} ms` : `fails: ${probe.problem}`
}

function clockText(time: string): string {
  return time.slice(11, 19)
}
