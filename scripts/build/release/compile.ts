// Compiles the program into one file for one platform: bundle, native part of libSQL, and the Bun runtime. Two builds of
// the same files give the same bytes, whatever folder they lie in.
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Build, BunPlugin } from 'bun'
import { listCommands } from '../../latchkey.ts'

export const root = join(import.meta.dirname, '../../..')
/** The program, and the thread that it starts, which the compiled program finds under its path in the repository. */
const entries = ['src/main.ts', 'db/file/reader-thread.ts'].map((path) => join(root, path))

export type Compilation = {
  /** An absolute path. */
  outfile: string
  /** The path of libSQL's native part for the platform, an `index.node`. */
  nativePart: string
  /** The platform and its runtime; without it, the platform of this process. */
  platform?: { target: Build.CompileTarget; runtime: string }
  /** Constants of the program, such as `LATCHKEY_COMMIT`. */
  texts: Readonly<Record<string, string>>
}

/** Writes the compiled program to `outfile`, and moves this process to the folder of the project. Fails with the messages of the bundler. */
export async function compile({ outfile, nativePart, platform, texts }: Compilation): Promise<void> {
  mkdirSync(dirname(outfile), { recursive: true })
  // The bundler derives the names of the parts from the paths of their files, relative to the current folder.
  process.chdir(root)
  const constants = { ...texts, LATCHKEY_COMMANDS: JSON.stringify(await listCommands()) }
  const result = await Bun.build({
    entrypoints: entries,
    format: 'esm',
    minify: true,
    bytecode: true,
    // A process loads only the parts that it uses.
    splitting: true,
    // Settings come only from flags, the environment and --config, never from files in the current folder.
    compile: {
      outfile,
      autoloadDotenv: false,
      autoloadBunfig: false,
      ...(platform === undefined ? {} : { target: platform.target, executablePath: platform.runtime }),
    },
    define: Object.fromEntries(Object.entries(constants).map(([name, text]) => [name, JSON.stringify(text)])),
    plugins: [embedNativePart(nativePart)],
  })
  if (!result.success) throw new Error(result.logs.map(String).join('\n'))
}

/** Returns the names of the npm packages whose code is in the program, sorted. The native part is not one of them. */
export async function findBundledPackages(nativePart: string): Promise<string[]> {
  const result = await Bun.build({
    entrypoints: entries,
    target: 'bun',
    metafile: true,
    minify: true,
    plugins: [embedNativePart(nativePart)],
  })
  const inputs = Object.values(result.metafile?.outputs ?? {}).flatMap((output) => Object.keys(output.inputs))
  if (inputs.length === 0) throw new Error('The bundler no longer lists the files in its output')
  const names = inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1])
  return [...new Set(names.filter((name) => name !== undefined))]
    .filter((name) => !/^\.|^@libsql\/(?:linux|darwin)-/.test(name))
    .toSorted()
}

/**
 * libSQL finds its native part by a computed name, which a bundler cannot follow, and names its folder, which would make
 * each folder's build differ. The build puts a fixed name in place of both.
 */
function embedNativePart(nativePart: string): BunPlugin {
  return {
    name: 'embed-libsql-native-part',
    setup: (build) => {
      build.onLoad({ filter: /node_modules\/libsql\/(index|promise)\.js$/ }, ({ path }) => {
        const source = readFileSync(path, 'utf8')
        const contents = source.replace(search, () => loadNativePart(nativePart)).replaceAll(platformChecks, '')
        if (contents === source || contents.includes('__dirname') || contents.includes('@neon-rs'))
          throw new Error(`${path} no longer loads its native part the way this build knows: see scripts/build/release`)
        return { contents, loader: 'js' }
      })
    },
  }
}

const search = /^function requireNative\(\) \{$[\s\S]*?^\}$/m
const platformChecks = /^const \{[^}]*\} = require\("(?:@neon-rs\/load|detect-libc)"\);$/gm

/**
 * The binary unpacks the library into the temporary folder before any of our code runs, so this code reports the error.
 */
function loadNativePart(path: string): string {
  return `function requireNative() {
  try { return require(${JSON.stringify(path)}) } catch (error) {
    const needed = /^(lib[^:]+): cannot open shared object|Error loading shared library (lib[^:]+):/.exec(error.message)
    process.stderr.write(needed
      ? 'latchkey: The database library needs ' + (needed[1] ?? needed[2]) + ', which this system does not have; install libgcc (Debian: libgcc-s1)\\n'
      : 'latchkey: The database library cannot be unpacked into the temporary folder ' + JSON.stringify(require('node:os').tmpdir()) +
        '; set TMPDIR to a folder that can be written to and executed from (' + error.message + ')\\n')
    process.exit(3)
  }
}`
}
