// Whether a folder can take archives.
import { describeFolderDenial } from '../runtime/file-access.ts'

/** A sentence that says what to do, or undefined. It is never created: an unmounted disk would get its files on another one. */
export function folderProblem(folder: string): string | undefined {
  const denial = describeFolderDenial(folder)
  return denial && `The archive folder ${JSON.stringify(folder)} cannot be used: ${denial}`
}
