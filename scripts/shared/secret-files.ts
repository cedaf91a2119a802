// Writes the texts of new keys to files that only the current user can read.
import { accessSync, chmodSync, constants, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../src/fault.ts'

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
 * A key that cannot be written is printed on standard error, since it is stored nowhere else.
 */
export function writeSecrets(folder: string, secrets: readonly Secret[]): string[] {
  return secrets.map(({ name, key }) => {
    const path = join(folder, encodeURIComponent(name))
    try {
      writeFileSync(path, `${key}\n`, { mode: 0o600 })
      chmodSync(path, 0o600)
    } catch (error) {
      process.stderr.write(`${path} cannot be written (${(error as Error).message}); the key is: ${key}\n`)
    }
    return path
  })
}
