// Packages of the npm registry: what bun.lock fixes, and their files, checked against a digest before use.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './compile.ts'
import type { Component } from './cyclonedx.ts'

export type LockedPackage = { name: string; version: string /** `sha512-` and base64. */; integrity: string }

/** Finds a package in bun.lock. Fails if it is not there, or has no digest. */
export function findLocked(name: string): LockedPackage {
  const lock = Bun.JSONC.parse(readFileSync(join(root, 'bun.lock'), 'utf8')) as { packages: Record<string, unknown[]> }
  const [id, , , integrity] = lock.packages[name] ?? []
  if (typeof id !== 'string' || typeof integrity !== 'string' || !integrity.startsWith('sha512-'))
    throw new Error(`bun.lock has no digest of ${name}`)
  return { name, version: id.slice(name.length + 1), integrity }
}

/** Describes a bundled package. */
export function readPackage(name: string): Component {
  const { version, integrity } = findLocked(name)
  const folder = join(root, 'node_modules', name)
  const described = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    license: string
    author?: string | { name: string }
  }
  const file = readdirSync(folder).find((each) => /^licen[sc]e/i.test(each))
  const author = typeof described.author === 'object' ? described.author.name : described.author
  return {
    type: 'library',
    name,
    version,
    purl: npmPurl(name, version),
    license: described.license,
    integrity,
    author: author?.replace(/ <.*/, '') ?? `the authors of ${name}`,
    licenseText: file === undefined ? undefined : readFileSync(join(folder, file), 'utf8').trim(),
  }
}

/** Its name in a bill of materials (package URL). */
export function npmPurl(name: string, version: string): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

/**
 * Returns a folder with the files of a package. Downloads it from the registry that Bun is configured with (`.npmrc`,
 * `npm_config_registry`) unless an earlier run did. Fails if the digest differs.
 */
export async function fetchPackage(
  { name, version, integrity }: LockedPackage,
  cache = join(root, 'node_modules/.cache/release'),
): Promise<string> {
  const folder = join(cache, `${name.replace('/', '+')}@${version}`)
  const archive = `${folder}.tgz`
  if (!existsSync(archive)) {
    const url = await findArchive(`${name}@${version}`)
    const response = await fetch(url)
    if (!response.ok) throw new Error(`${url} could not be fetched: status ${response.status}`)
    mkdirSync(dirname(archive), { recursive: true })
    await Bun.write(`${archive}.part`, await response.arrayBuffer())
    renameSync(`${archive}.part`, archive)
  }
  // Checked in every run: the folder of an earlier run is not trusted.
  const bytes = readFileSync(archive)
  const digest = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  if (digest !== integrity) {
    rmSync(archive)
    throw new Error(`${name}@${version} has the digest ${digest}; it must be ${integrity}`)
  }
  rmSync(folder, { recursive: true, force: true })
  await new Bun.Archive(bytes).extract(folder)
  return join(folder, 'package')
}

/** Asks the registry where the archive of a package lies. Fails with Bun's own message. */
async function findArchive(id: string): Promise<string> {
  const asking = Bun.spawn([process.execPath, 'pm', 'view', id, 'dist.tarball'], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([
    new Response(asking.stdout).text(),
    new Response(asking.stderr).text(),
    asking.exited,
  ])
  const url = stdout.trim()
  if (!URL.canParse(url)) throw new Error(`${id} was not found in the registry: ${stderr.trim()}`)
  return url
}
