// What is inside a compiled program: packages, runtime and libraries with their versions, digests and licenses.
import { readFileSync } from 'node:fs'
import { createClient } from '@libsql/client'
import packageJson from '../../../package.json' with { type: 'json' }
import { findBundledPackages } from './compile.ts'
import { type Component, createSbom } from './cyclonedx.ts'
import { writeLicenses } from './license-texts.ts'
import { findCrates, linkedIntoBun } from './linked-libraries.ts'
import { findLocked, npmPurl, readPackage } from './npm-packages.ts'

export type Program = {
  /** The package with the native part, and the path of its file. */
  nativePart: string
  nativePartPath: string
  commit: string
  /** The package with the runtime; without it, the runtime is the one of this process. */
  runtime?: { package: string; integrity: string }
}

/** Returns the SBOM (CycloneDX 1.6, JSON) and the license texts of a program. */
export async function describeContents(program: Program): Promise<{ sbom: string; licenses: string }> {
  const packages = (await findBundledPackages(program.nativePartPath)).map(readPackage)
  const parts = [...packages, describeBun(program), await describeNativePart(program)]
  const sbom = createSbom({ name: packageJson.name, version: packageJson.version, commit: program.commit }, parts)
  return { sbom: `${JSON.stringify(sbom, null, 2)}\n`, licenses: writeLicenses(parts) }
}

function describeBun({ runtime }: Program): Component {
  const version = process.versions.bun ?? 'unknown'
  return {
    type: 'platform',
    name: 'bun',
    version,
    purl: runtime === undefined ? `pkg:generic/bun@${version}` : npmPurl(runtime.package, version),
    license: 'MIT',
    integrity: runtime?.integrity,
    author: 'Oven and the authors of Bun',
    parts: linkedIntoBun.map(({ name, license, key }) => ({
      type: 'library',
      name,
      version: key === undefined ? undefined : process.versions[key],
      license,
    })),
  }
}

async function describeNativePart({ nativePart, nativePartPath }: Program): Promise<Component> {
  const { version, integrity } = findLocked(nativePart)
  const crates = findCrates(readFileSync(nativePartPath))
  if (!crates.some(({ name }) => name === 'libsql')) throw new Error(`${nativePartPath} no longer names its libSQL`)
  const sqlite = await readSqliteVersion()
  return {
    type: 'library',
    name: nativePart,
    version,
    purl: npmPurl(nativePart, version),
    license: 'MIT',
    integrity,
    author: 'Joshua Wise, Pekka Enberg and the authors of libSQL',
    parts: [
      {
        type: 'library',
        name: 'sqlite',
        version: sqlite,
        purl: `pkg:generic/sqlite@${sqlite}`,
        cpe: `cpe:2.3:a:sqlite:sqlite:${sqlite}:*:*:*:*:*:*:*`,
        license: 'blessing',
      },
      ...crates.map((crate) => ({
        type: 'library' as const,
        ...crate,
        purl: `pkg:cargo/${crate.name}@${crate.version}`,
        license: crate.name.startsWith('libsql') ? 'MIT' : undefined,
      })),
    ],
  }
}

/** All native parts of one version of libSQL have the same SQLite. */
async function readSqliteVersion(): Promise<string> {
  const client = createClient({ url: ':memory:' })
  const { rows } = await client.execute('SELECT sqlite_version() AS version')
  client.close()
  return String(rows[0]?.version)
}
