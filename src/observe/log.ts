// One JSON line an event on standard error. It escapes what it is given and never sees a credential.

export type LogLevel = 'info' | 'warn' | 'error'
export type Log = (level: LogLevel, event: string, fields?: Record<string, unknown>) => void

/** A log that writes lines such as `{"time":"…","level":"warn","event":"exchange_refused",…}`. */
export function createLog(writeLine: (line: string) => void, now: () => number = Date.now): Log {
  return (level, event, fields = {}) => {
    writeLine(`${JSON.stringify({ time: new Date(now()).toISOString(), level, event, ...fields })}\n`)
  }
}
