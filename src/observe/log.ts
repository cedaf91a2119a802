// One JSON line an event on standard error. It escapes what it is given, and should a credential be in it, leaves it out.
import { withoutSecrets } from '../fault.ts'

/** The least important last. */
export const logLevels = ['error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof logLevels)[number]
export type Log = (level: LogLevel, event: string, fields?: Record<string, unknown>) => void

/** A log that writes lines such as `{"time":"…","level":"warn","event":"exchange_refused",…}`. */
export function createLog(writeLine: (line: string) => void, now: () => number = Date.now): Log {
  return (level, event, fields = {}) => {
    const line = { time: new Date(now()).toISOString(), level, event, ...fields }
    writeLine(`${JSON.stringify(line, withoutSecretsIn)}\n`)
  }
}

/** At any depth: a field may hold a list or an object. */
function withoutSecretsIn(_name: string, value: unknown): unknown {
  return typeof value === 'string' ? withoutSecrets(value) : value
}

/** The same log without the lines that are less important than `level`, which is read for each line. */
export function atLevel(log: Log, level: () => LogLevel): Log {
  return (of, event, fields) => {
    if (isLogged(of, level())) log(of, event, fields)
  }
}

export function isLogged(level: LogLevel, least: LogLevel): boolean {
  return logLevels.indexOf(level) <= logLevels.indexOf(least)
}

/** The same log with these fields at the end of every line. */
export function withFields(log: Log, more: Record<string, unknown>): Log {
  return (level, event, fields) => log(level, event, { ...fields, ...more })
}
