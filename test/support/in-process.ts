// A server in the test's own process, for commands that a test runs: they use its socket, and load a third of what they load without one.
import { dependencies } from '../../scripts/shared/command-line.ts'
import { loadConfig } from '../../src/config.ts'
import { type Server, startServer } from '../../src/server.ts'

/** Serves an initialized database on a free port, and logs nothing. */
export function serveInProcess(env: Record<string, string>): Promise<Server> {
  const config = loadConfig({ flags: {}, environment: { LATCHKEY_LISTEN: '127.0.0.1:0', ...env } })
  const onBroken = (error: unknown) => {
    throw error
  }
  return startServer(config, { ...dependencies, log: () => {}, onBroken })
}
