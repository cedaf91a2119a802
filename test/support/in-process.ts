// Admin operations and servers in the test's own process, for what a test needs but is not about: a process of its own takes most of a second.
import { dependencies as commandDependencies } from '../../scripts/shared/command-line.ts'
import { runInProcess } from '../../scripts/shared/in-process.ts'
import type { OperationName } from '../../src/admin/operations.ts'
import { loadConfig } from '../../src/config.ts'
import type { Dependencies } from '../../src/context.ts'
import { type Server, startServer } from '../../src/server.ts'

type Env = Record<string, string>

const dependencies: Dependencies = {
  ...commandDependencies,
  log: () => {},
  onBroken: (error) => {
    throw error
  },
}

const configFor = (env: Env) => loadConfig({ flags: {}, environment: env })

/**
 * Runs an operation as a command does without a server: opens the database, runs, closes it.
 * @throws Fault as the operation does; `conflict` while another process owns the database
 */
export async function operate<Answer>(env: Env, name: OperationName, input: object = {}): Promise<Answer> {
  const call = { name, input, user: { osUser: null, sudoUser: null } }
  return (await runInProcess(configFor(env), dependencies, call, async () => undefined)) as Answer
}

/** Serves an initialized database on a free port. Commands then use its socket, and load a third of what they load without. */
export function serveInProcess(env: Env): Promise<Server> {
  return startServer(configFor({ LATCHKEY_LISTEN: '127.0.0.1:0', ...env }), dependencies)
}
