// A server in the test's own process. Commands that a test runs use its socket, and so load a third of the code.
import { dependencies } from '../../scripts/shared/command-line.ts'
import { type Server, startServer } from '../../src/server/server.ts'
import { loadConfig } from '../../src/settings/config.ts'

/** Serves an initialized database on a free port without logging. */
export function serveInProcess(env: Record<string, string>): Promise<Server> {
  const config = loadConfig({ flags: {}, environment: { LATCHKEY_LISTEN: '127.0.0.1:0', ...env } })
  const onBroken = (error: unknown) => {
    throw error
  }
  return startServer(config, { ...dependencies, log: () => {}, onBroken })
}
