// The source of a build: its commit and its version.
import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { root } from './compile.ts'

/**
 * Returns the commit of the source: with `-modified` if files differ from it, or `unknown` outside a checkout of this
 * project.
 */
export function readCommit(): string {
  const [folder, commit] = [git('rev-parse', '--show-toplevel'), git('rev-parse', 'HEAD')]
  if (folder === undefined || commit === undefined || realpathSync(folder) !== realpathSync(root)) return 'unknown'
  return git('status', '--porcelain') === '' ? commit : `${commit}-modified`
}

/** Returns the time of the commit, in seconds since 1970 UTC. Outside a checkout it is the beginning of 1980. */
export function readCommitTime(): number {
  return Number(git('log', '-1', '--format=%ct') ?? 315_532_800)
}

function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}
