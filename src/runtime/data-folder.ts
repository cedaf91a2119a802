// The folder of a new database.
import { mkdirSync } from 'node:fs'
import { Fault } from '../fault.ts'

/**
 * Creates the folder if it does not exist; only the current user can read it.
 * @throws Fault `configuration`
 */
export function createDataFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new Fault(
      'configuration',
      `The data folder ${JSON.stringify(path)} cannot be created: ${(error as Error).message}`,
      { cause: error },
    )
  }
}
