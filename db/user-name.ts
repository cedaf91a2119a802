// The names of this machine's users.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** By the machine's own list, or else by its directory service; the number where neither knows one. The environment has no say. */
export function userName(uid: number): string {
  const list = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8') : ''
  const line = list.split('\n').find((entry) => entry.split(':')[2] === String(uid))
  const listed = line?.split(':')[0] ?? spawnSync('id', ['-un', String(uid)], { encoding: 'utf8' }).stdout?.trim()
  return listed || String(uid)
}
