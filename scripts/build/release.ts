// `bun run release`: builds the program for every platform, packages and an image of it for Linux, and the portable files, with digests,
// signature, bills of materials and notes.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { compile, root } from './release/compile.ts'
import { describeContents } from './release/contents.ts'
import { deb } from './release/deb.ts'
import { fetchLibraries } from './release/debian-libraries.ts'
import { gzip } from './release/entry.ts'
import { type ReleasedFile, writeNotes } from './release/notes.ts'
import { fetchPackage, findLocked } from './release/npm-packages.ts'
import { type Image, ociArchive } from './release/oci.ts'
import { packageOf } from './release/package.ts'
import { buildPortableFiles } from './release/portable-files.ts'
import { rpm } from './release/rpm.ts'
import { digestFile, signFile } from './release/signature.ts'
import { readCommit, readCommitTime } from './release/source.ts'
import { bunVersion, type Target, targets } from './release/targets.ts'

const sums = 'SHA256SUMS'

const usage = `Usage: bun run release [--out DIR] [--target NAME]... [--sign KEYFILE]
       bun run release --verify [--out DIR] [--target NAME]...

  --out DIR        the folder of the release (default: dist/release)
  --target NAME    only this platform: ${targets.map(({ name }) => name).join(', ')}
  --sign KEYFILE   sign the digests with this secret key of minisign
  --verify         build again, and compare with the digests in DIR`

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'dist/release' },
    target: { type: 'string', multiple: true },
    sign: { type: 'string' },
    verify: { type: 'boolean' },
    help: { type: 'boolean' },
  },
})

/** Builds one program. Returns the names of the files. */
async function buildTarget(target: Target, folder: string, commit: string): Promise<string[]> {
  const name = programName(target.name)
  const runtime = { name: target.runtime.package, version: bunVersion, integrity: target.runtime.integrity }
  const [native, bun] = await Promise.all([fetchPackage(findLocked(target.nativePart)), fetchPackage(runtime)])
  const nativePart = join(native, 'index.node')
  const { sbom, licenses } = await describeContents({
    nativePart: target.nativePart,
    nativePartPath: nativePart,
    commit,
    runtime: target.runtime,
  })
  await compile({
    outfile: join(folder, name),
    nativePart,
    platform: { target: target.compileTarget, runtime: join(bun, 'bin/bun') },
    texts: { LATCHKEY_COMMIT: commit, LATCHKEY_SBOM: sbom, LATCHKEY_LICENSES: licenses },
  })
  writeFileSync(join(folder, `${name}.cdx.json`), sbom)
  writeFileSync(join(folder, `${name}.licenses.txt`), licenses)
  const program = readFileSync(join(folder, name))
  writeFileSync(join(folder, `${name}.gz`), gzip(program))
  console.log(`Made ${join(folder, name)}`)
  return [
    name,
    `${name}.gz`,
    `${name}.cdx.json`,
    `${name}.licenses.txt`,
    ...writePackages(target, folder, program, licenses),
  ]
}

/** Writes the packages for Linux with a program. Returns their names. */
function writePackages({ packages }: Target, folder: string, program: Buffer, licenses: string): string[] {
  if (packages === undefined) return []
  const { name, version } = packageJson
  const contents = { program, licenses, manual: manualPage(), time: readCommitTime() }
  const made = [
    {
      file: `${name}_${version}_${packages.deb}.deb`,
      bytes: deb(packageOf({ ...contents, zshFolder: 'usr/share/zsh/vendor-completions' }), packages.deb),
    },
    {
      file: `${name}-${version}-1.${packages.rpm}.rpm`,
      bytes: rpm(packageOf({ ...contents, zshFolder: 'usr/share/zsh/site-functions' }), packages.rpm),
    },
  ]
  for (const { file, bytes } of made) writeFileSync(join(folder, file), bytes)
  return made.map(({ file }) => file)
}

/** The manual page, as the program of this source prints it. */
function manualPage(): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'src/main.ts'), 'man'], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`The manual page could not be made: ${stderr}`)
  return stdout
}

/** Writes one file with an image of each platform. Returns its name, or nothing if no platform has an image. */
async function writeImage(chosen: readonly Target[], folder: string, commit: string): Promise<string[]> {
  const images: Image[] = []
  for (const { name, packages } of chosen)
    if (packages !== undefined)
      images.push({
        architecture: packages.deb,
        libraries: await fetchLibraries(packages.deb),
        program: readFileSync(join(folder, programName(name))),
      })
  if (images.length === 0) return []
  const file = `${packageJson.name}-${packageJson.version}-image.oci.tar`
  writeFileSync(join(folder, file), ociArchive(images, { commit, time: readCommitTime() }))
  return [file]
}

const programName = (target: string) => `${packageJson.name}-${packageJson.version}-${target}`

async function buildAll(chosen: readonly Target[], folder: string): Promise<ReleasedFile[]> {
  const commit = readCommit()
  mkdirSync(folder, { recursive: true })
  const names = await buildPortableFiles(folder, commit)
  // One after another: each takes a second, and hundreds of megabytes.
  for (const target of chosen) names.push(...(await buildTarget(target, folder, commit)))
  names.push(...(await writeImage(chosen, folder, commit)))
  return Promise.all(
    names.map(async (name) => {
      const path = join(folder, name)
      return { name, bytes: statSync(path).size, sha256: await digestFile(path) }
    }),
  )
}

async function make(chosen: readonly Target[], folder: string): Promise<void> {
  if (readCommit().endsWith('-modified')) console.log('Files differ from the commit: nobody else can repeat this build')
  const files = await buildAll(chosen, folder)
  writeFileSync(join(folder, 'RELEASE-NOTES.md'), writeNotes(readCommit(), files))
  const notes = { name: 'RELEASE-NOTES.md', sha256: await digestFile(join(folder, 'RELEASE-NOTES.md')) }
  const lines = [...files, notes].map(({ name, sha256 }) => `${sha256}  ${name}\n`)
  writeFileSync(join(folder, sums), lines.join(''))
  if (values.sign === undefined) return console.log('Not signed: --sign KEYFILE signs the digests')
  signFile(join(folder, sums), values.sign, `${packageJson.name} ${packageJson.version}`)
  console.log(`Signed ${join(folder, sums)}`)
}

/** Builds in another folder, and compares. Returns false if a digest differs. */
async function verify(chosen: readonly Target[], folder: string): Promise<boolean> {
  const released = new Map(
    readFileSync(join(folder, sums), 'utf8')
      .trim()
      .split('\n')
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  )
  const again = mkdtempSync(join(tmpdir(), 'latchkey-release-'))
  try {
    const files = await buildAll(chosen, again)
    const lines = files.map(({ name, sha256 }) => {
      const isSame = released.get(name) === sha256
      return { isSame, text: `${isSame ? 'same' : 'DIFFERENT'}  ${sha256}  ${name}` }
    })
    console.log(lines.map(({ text }) => text).join('\n'))
    return lines.every(({ isSame }) => isSame)
  } finally {
    rmSync(again, { recursive: true, force: true })
  }
}

if (values.help === true) {
  console.log(usage)
  process.exit(0)
}
const unknown = values.target?.find((name) => !targets.some((target) => target.name === name))
if (unknown !== undefined || Bun.version !== bunVersion) {
  console.error(unknown === undefined ? `A release needs Bun ${bunVersion}, not ${Bun.version}` : usage)
  process.exit(2)
}
const chosen = targets.filter(({ name }) => values.target?.includes(name) ?? true)
const out = resolve(values.out)
try {
  if (values.verify !== true) await make(chosen, out)
  else if (!(await verify(chosen, out))) process.exit(1)
} catch (error) {
  console.error(`The release failed: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
}
