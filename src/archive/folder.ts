// Whether a folder can take archives.
import { type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { describeDenial } from '../../db/access.ts'

/** A sentence that says what to do, or undefined. It is never created: an unmounted disk would get its files on another one. */
export function folderProblem(folder: string): string | undefined {
  const cannot = (why: string) => `The archive folder ${JSON.stringify(folder)} cannot be used: ${why}`
  const denial = describeDenial(join(folder, 'archive'), { toWrite: true })
  const found = stat(folder)
  if (found?.isDirectory() === false) return cannot('it is not a folder; name a folder')
  if (denial !== undefined) return cannot(denial)
  return found === undefined ? cannot('it does not exist; create it') : undefined
}

/** Undefined also where it is out of reach. */
function stat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
