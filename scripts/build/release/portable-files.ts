// The files of a release that run on any JavaScript runtime: the helper for workloads, and its module for programs.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { root } from './compile.ts'
import { createSbom } from './cyclonedx.ts'
import { readPackage } from './npm-packages.ts'

/** The helper must stay small enough to be copied anywhere. */
export const portableBytesMax = 96 * 1024

/** The only package that may be inside: it speaks the protocols of `login`. */
const bundled = ['oauth4webapi']

/** Each file, and where its code begins. */
const entries = {
  'latchkey-agent.mjs': 'scripts/build/release/latchkey-agent.ts',
  'latchkey-client.mjs': 'src/agent/client.ts',
} as const
const types = 'latchkey-client.d.mts'
const sbom = 'latchkey-agent.cdx.json'

/**
 * Writes the files to the folder and returns their names. The same source gives the same bytes. Fails if another package
 * came into the bundle, or it grew too large.
 */
export async function buildPortableFiles(folder: string, commit: string): Promise<string[]> {
  mkdirSync(folder, { recursive: true })
  const path = resolve(folder)
  const before = process.cwd()
  // The bundler names modules by their paths relative to the current folder.
  process.chdir(root)
  try {
    for (const [name, entry] of Object.entries(entries)) writeFileSync(join(path, name), await bundle(name, entry))
  } finally {
    process.chdir(before)
  }
  copyFileSync(join(root, 'scripts/build/release', types), join(folder, types))
  const bill = createSbom({ name: 'latchkey-agent', version: packageJson.version, commit }, bundled.map(readPackage))
  writeFileSync(join(folder, sbom), `${JSON.stringify(bill, null, 2)}\n`)
  return [...Object.keys(entries), types, sbom]
}

async function bundle(name: string, entry: string): Promise<string> {
  const result = await Bun.build({
    entrypoints: [join(root, entry)],
    target: 'node',
    format: 'esm',
    minify: true,
    metafile: true,
    define: { LATCHKEY_VERSION: JSON.stringify(packageJson.version) },
  })
  const foreign = Object.keys(result.metafile?.inputs ?? {}).filter(
    (path) => path.includes('node_modules') && !bundled.some((each) => path.includes(`node_modules/${each}/`)),
  )
  if (foreign.length > 0) throw new Error(`${name} must not contain ${foreign.join(', ')}`)
  const code = (await result.outputs[0]?.text()) ?? ''
  const shebang = name === 'latchkey-agent.mjs' ? '#!/usr/bin/env node\n' : ''
  const text = `${shebang}// ${name} ${packageJson.version}\n${code.replace(/^#!.*\n/, '').replace(/^\/\/ @bun.*\n/, '')}${licenses()}`
  if (Buffer.byteLength(text) > portableBytesMax)
    throw new Error(`${name} has ${Buffer.byteLength(text)} bytes; at most ${portableBytesMax} are allowed`)
  return text
}

/** The licenses of the packages ask for their texts in every copy. */
function licenses(): string {
  const texts = bundled.map(readPackage).map(({ name, version, licenseText }) => `${name} ${version}\n\n${licenseText}`)
  return `/*\n${texts.join('\n\n')}\n*/\n`
}
