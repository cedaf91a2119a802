// Writes the texts of new keys to files that only the current user can read.
import { accessSync, constants, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../../src/fault.ts'
import { exitCodeFailed } from './program.ts'

type Secret = { name: string; key: string }

/** The folder, made if it is missing. @throws Fault `usage` if files cannot be written there */
export function openSecretsFolder(folder: string): string {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new Fault('usage', `The folder ${JSON.stringify(folder)} cannot be written: ${(error as Error).message}`)
  }
  return folder
}

/**
 * One file per key, named after it; characters that have a meaning in paths are percent-encoded. Returns the paths.
 * A key that cannot be written is printed on standard error, since it is stored nowhere else, and the exit code is 1.
 */
export function writeSecrets(folder: string, secrets: readonly Secret[]): string[] {
  return secrets.flatMap(({ name, key }) => {
    const path = join(folder, encodeURIComponent(name))
    try {
      writePrivate(path, `${key}\n`)
      return [path]
    } catch (error) {
      process.stderr.write(`${path} cannot be written (${(error as Error).message}); the key is: ${key}\n`)
      process.exitCode = exitCodeFailed
      return []
    }
  })
}

/** Replaces what is at the path, so that neither a link nor the mode of an older file has a say. */
function writePrivate(path: string, text: string): void {
  const made = join(dirname(path), `.${crypto.randomUUID()}`)
  try {
    writeFileSync(made, text, { mode: 0o600, flag: 'wx', flush: true })
    renameSync(made, path)
  } catch (error) {
    rmSync(made, { force: true })
    throw error
  }
}
