// How this program starts itself as a child process: as the binary, or from source on Bun or Deno.
import { fileURLToPath } from 'node:url'

/** The word that starts the process which copies the database for a backup. */
export const copyProcessWord = 'backup-copy-process'

/** In the compiled binary the second argument is a path inside the binary, not one that was passed. */
export function isCompiled(): boolean {
  return process.argv[1]?.includes('$bunfs') === true
}

/** The program and arguments that run this program with one word as its arguments. */
export function ownCommand(word: string): [program: string, args: string[]] {
  if (isCompiled()) return [process.execPath, [word]]
  const main = fileURLToPath(new URL('../main.ts', import.meta.url))
  return [process.execPath, 'Bun' in globalThis ? [main, word] : ['run', '--allow-all', main, word]]
}

/** What a child process of ours needs of the environment: no settings, and so no secrets. */
export function ownEnvironment(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'DENO_DIR', 'XDG_CACHE_HOME', 'LD_LIBRARY_PATH']
  return Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
}
