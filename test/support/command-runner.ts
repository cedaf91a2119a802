// Runs commands on one database like a user: each in its own process, with output parsed as JSON.
import { expect } from 'bun:test'
import { type Finished, runCommand } from './latchkey.ts'
import { settingsIn } from './server-kind.ts'

export type JsonObject = Record<string, unknown>
export type CommandRunner = {
  env: Record<string, string>
  run: (...args: string[]) => Promise<Finished>
  /** Returns the JSON that a command prints. The command must succeed and print nothing else. */
  json: (...args: string[]) => Promise<JsonObject>
  /** Returns the exit code and the JSON on standard error of a failing command. Standard output must be empty. */
  failure: (...args: string[]) => Promise<{ code: number; error: { code: string; message: string } }>
}

export function createCommandRunner(folder: string): CommandRunner {
  const env = settingsIn(folder)
  const run = (...args: string[]) => runCommand(args, { cwd: folder, env })
  return {
    env,
    run,
    json: async (...args) => {
      const { code, stdout, stderr } = await run(...args, '--json')
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
      return JSON.parse(stdout) as JsonObject
    },
    failure: async (...args) => {
      const { code, stdout, stderr } = await run(...args, '--json')
      expect({ args, stdout, lines: stderr.split('\n').length }).toEqual({ args, stdout: '', lines: 2 })
      const failure = JSON.parse(stderr) as { error: { code: string; message: string } }
      expect(failure).toEqual({ error: { code: expect.any(String), message: expect.any(String) } })
      return { code, ...failure }
    },
  }
}
