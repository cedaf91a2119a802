// Digests of a release, and their signature by minisign with the key of the releaser.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'

/** Returns the SHA-256 of a file in hex. */
export async function digestFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * Writes `FILE.minisig` beside a file. minisign asks for the passphrase of the key on the terminal. Fails if minisign is
 * not installed, or refuses.
 */
export function signFile(path: string, keyFile: string, comment: string): void {
  const args = ['-S', '-s', resolve(keyFile), '-m', path, '-t', comment]
  const { error, status } = spawnSync('minisign', args, { stdio: ['inherit', 'ignore', 'inherit'] })
  if (error !== undefined)
    throw new Error(`minisign could not be started (${error.message}); install it, e.g. from Debian`)
  if (status !== 0) throw new Error(`minisign could not sign with ${keyFile}`)
}
