// A file with the current access token, for programs that read their credential from one: replaced in one step, and
// readable by its user alone.
import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { Fault } from '../fault.ts'

/** Replaces the file with the text; its mode is 0600. A link in its place is replaced, not followed. Throws a fault. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const next = `${path}.${randomUUID()}`
  try {
    const file = await open(next, 'wx', 0o600)
    try {
      await file.writeFile(text)
    } finally {
      await file.close()
    }
    await rename(next, path)
  } catch (error) {
    await rm(next, { force: true })
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new Fault('unavailable', `The token could not be written to ${path}`, {
      hint: `: ${code}; check that the folder exists and that this user can write to it`,
    })
  }
}
