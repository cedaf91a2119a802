// `bun run build`: builds dist/latchkey, one file with the program, its migrations and libSQL's native library.
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { compile, root } from './release/compile.ts'
import { describeContents } from './release/contents.ts'
import { readCommit } from './release/source.ts'

const { values } = parseArgs({ options: { outfile: { type: 'string', default: 'dist/latchkey' } } })
const outfile = resolve(values.outfile)

const nativePart = `@libsql/${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
const nativePartPath = join(root, 'node_modules', nativePart, 'index.node')
const commit = readCommit()
const { sbom, licenses } = await describeContents({ nativePart, nativePartPath, commit })
await compile({
  outfile,
  nativePart: nativePartPath,
  texts: { LATCHKEY_COMMIT: commit, LATCHKEY_SBOM: sbom, LATCHKEY_LICENSES: licenses },
})
console.log(`Made ${outfile}`)
