// The runtimes that run a portable file: Bun, which runs the tests, Deno from its package, and Node where it is installed.
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** The command line of each runtime in front of a file; undefined where it is not installed. */
export const runtimes: readonly [name: string, command: string[] | undefined][] = [
  ['Bun', [process.execPath]],
  ['Node', findNode()],
  ['Deno', findDeno()],
]

function findNode(): string[] | undefined {
  const node = Bun.which('node')
  const version = node === null ? '' : new TextDecoder().decode(Bun.spawnSync([node, '--version']).stdout)
  return node !== null && Number(/^v(\d+)/.exec(version)?.[1]) >= 20 ? [node] : undefined
}

/** The program itself, since the one in `.bin` is a script that passes on no signals. */
function findDeno(): string[] | undefined {
  const [path] = [...new Bun.Glob('node_modules/@deno/*/deno').scanSync({ cwd: root, dot: true })]
  return path === undefined ? undefined : [join(root, path), 'run', '--allow-all', '--no-config']
}
