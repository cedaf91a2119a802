// The error for the operator of the machine when the disk or the file is the reason. Callers over HTTP get the generic error.
import { damagedFile, damageOf, writeObstacle } from '../../../db/file/file-errors.ts'
import { Fault } from '../../fault.ts'

/** Undefined for any other error. */
export function storageFault(error: unknown, databasePath: string): Fault | undefined {
  const damage = damageOf(error)
  if (damage !== undefined) return new Fault('configuration', damagedFile(databasePath, damage), { cause: error })
  const obstacle = writeObstacle(error)
  if (obstacle === undefined) return undefined
  const database = `database ${JSON.stringify(databasePath)}`
  const message =
    obstacle.kind === 'full'
      ? `The disk that holds the ${database} is full; the change was not saved: free some space and try again`
      : `The ${database} could not be written: ${obstacle.text}; the change was not saved: look at the disk and try again`
  return new Fault('unavailable', message, { cause: error })
}
