// One JSON line an event on standard error. It escapes what it is given, and should a credential be in it, leaves it out.
import { withoutSecrets } from '../fault.ts'

export type LogLevel = 'info' | 'warn' | 'error'
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
