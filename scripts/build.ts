// `bun run build`: builds dist/latchkey, one file with the program, its migrations and libSQL's native library.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { BunPlugin } from 'bun'

const { values } = parseArgs({ options: { outfile: { type: 'string', default: 'dist/latchkey' } } })
const outfile = resolve(values.outfile)

/** libSQL loads its native library by a computed name, which a bundler cannot follow. The build inserts the name. */
const nativePart = `@libsql/${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
const computedName = 'return require(`@libsql/$' + '{target}`);'

/**
 * The binary unpacks the library into the temporary folder before any of our code runs, so this code reports the error.
 */
const literalName = `
  try { return require('${nativePart}/index.node') } catch (error) {
    process.stderr.write('latchkey: The database library cannot be unpacked into the temporary folder ' + JSON.stringify(require('node:os').tmpdir()) +
      '; set TMPDIR to a folder that can be written to and executed from (' + error.message + ')\\n')
    process.exit(3)
  }`

const embedNativePart: BunPlugin = {
  name: 'embed-libsql-native-part',
  setup: (build) => {
    build.onLoad({ filter: /node_modules\/libsql\/(index|promise)\.js$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8')
      if (!source.includes(computedName))
        throw new Error(`${path} no longer loads its native part the way this build knows: look at scripts/build.ts`)
      return { contents: source.replace(computedName, () => literalName), loader: 'js' }
    })
  },
}

const root = join(import.meta.dirname, '..')

/**
 * Returns the commit of the source: with `-modified` if files differ from it, or `unknown` outside a checkout of this
 * project.
 */
function readCommit(): string {
  const [folder, commit] = [git('rev-parse', '--show-toplevel'), git('rev-parse', 'HEAD')]
  if (folder === undefined || commit === undefined || realpathSync(folder) !== realpathSync(root)) return 'unknown'
  return git('status', '--porcelain') === '' ? commit : `${commit}-modified`
}

function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

mkdirSync(dirname(outfile), { recursive: true })
const result = await Bun.build({
  entrypoints: [join(root, 'src/main.ts')],
  format: 'esm',
  minify: true,
  bytecode: true,
  // Settings come only from flags, the environment and --config, never from files in the current folder.
  compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
  define: { LATCHKEY_COMMIT: JSON.stringify(readCommit()) },
  plugins: [embedNativePart],
})
if (!result.success) {
  for (const log of result.logs) console.error(String(log))
  process.exit(1)
}
console.log(`Made ${outfile}`)
