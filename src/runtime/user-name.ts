// Looks up the names of this machine's users.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/**
 * Reads the name from /etc/passwd, then from the directory service, and otherwise returns the number. It ignores the
 * environment.
 */
export function userName(uid: number): string {
  const list = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8') : ''
  const line = list.split('\n').find((entry) => entry.split(':')[2] === String(uid))
  const listed = line?.split(':')[0] ?? spawnSync('id', ['-un', String(uid)], { encoding: 'utf8' }).stdout?.trim()
  return listed || String(uid)
}
