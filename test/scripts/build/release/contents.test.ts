// What a program says about its contents: a bill of materials that its schema accepts, and a license text for each part.
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import packageJson from '../../../../package.json' with { type: 'json' }
import { root } from '../../../../scripts/build/release/compile.ts'
import { describeContents } from '../../../../scripts/build/release/contents.ts'
import { buildPortableFiles } from '../../../../scripts/build/release/portable-files.ts'
import { temporaryFolder } from '../../../support/latchkey.ts'

type Part = { name: string; version?: string; purl?: string; hashes?: { content: string }[]; components?: Part[] }

const nativePart = `@libsql/${process.platform}-${process.arch}${process.platform === 'linux' ? '-gnu' : ''}`
const contents = await describeContents({
  nativePart,
  nativePartPath: join(root, 'node_modules', nativePart, 'index.node'),
  commit: 'abc',
})
const sbom = JSON.parse(contents.sbom) as { components: Part[] }
const find = (parts: Part[] | undefined, name: string) => parts?.find((part) => part.name === name)

function readSchema(name: string): object {
  return JSON.parse(
    readFileSync(join(root, 'test/fixtures/cyclonedx', `${name}.SNAPSHOT.schema.json`), 'utf8'),
  ) as object
}

const ajv = new Ajv({ strict: false, validateFormats: false })
for (const name of ['spdx', 'jsf-0.82'])
  ajv.addSchema(readSchema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`)
const validate = ajv.compile(readSchema('bom-1.6'))

describe('the bill of materials', () => {
  test('is valid CycloneDX 1.6', () => {
    expect(validate(sbom), ajv.errorsText(validate.errors)).toBe(true)
  })

  test('is held against a schema that refuses unknown licenses and components without a name', () => {
    const [first] = sbom.components
    expect(validate({ ...sbom, components: [{ ...first, licenses: [{ license: { id: 'Invented-1.0' } }] }] })).toBe(
      false,
    )
    expect(validate({ ...sbom, components: [{ ...first, name: undefined }] })).toBe(false)
  })

  test('has every dependency of the program with the version and digest of bun.lock', () => {
    for (const [name, version] of Object.entries(packageJson.dependencies)) {
      const part = find(sbom.components, name)
      expect([name, part?.version, part?.purl]).toEqual([
        name,
        version,
        `pkg:npm/${name.replace('@', '%40')}@${version}`,
      ])
      const digest = Buffer.from(part?.hashes?.[0]?.content ?? '', 'hex').toString('base64')
      expect(readFileSync(join(root, 'bun.lock'), 'utf8')).toContain(`sha512-${digest}`)
    }
  })

  test('has no package that only tests need', () => {
    const names = sbom.components.map(({ name }) => name)
    expect(Object.keys(packageJson.devDependencies).filter((name) => names.includes(name))).toEqual([])
  })

  test('has Bun and libSQL with what they contain', async () => {
    const bun = find(sbom.components, 'bun')
    expect(bun?.version).toBe(Bun.version)
    expect(find(bun?.components, 'WebKit (JavaScriptCore)')?.version).toBe(process.versions.webkit)
    const native = find(sbom.components, nativePart)
    expect(find(native?.components, 'libsql')?.purl).toMatch(/^pkg:cargo\/libsql@\d+\.\d+\.\d+$/)
    expect(find(native?.components, 'sqlite')?.version).toMatch(/^3\.\d+\.\d+$/)
  })
})

test('the license texts have a section for each component, and each standard text once', () => {
  for (const { name, version } of sbom.components) expect(contents.licenses).toContain(`\n${name} ${version} (`)
  for (const license of ['MIT', 'Apache-2.0', 'LGPL-2.0-or-later', 'LGPL-2.1-or-later'])
    expect(contents.licenses.split(`\nThe text of ${license}\n===`)).toHaveLength(2)
  const referred = [...contents.licenses.matchAll(/^The text of (\S+) is below\.$/gm)].map(([, license]) => license)
  expect(referred.length).toBeGreaterThan(0)
  for (const license of referred) expect(contents.licenses).toContain(`\nThe text of ${license}\n`)
  // Each component names its own copyright.
  expect(contents.licenses).not.toMatch(/<year>|<owner>|Internet Systems Consortium/)
})

test('the portable files are the same in every build, with one package, and their bill of materials is valid', async () => {
  const [one, other] = [temporaryFolder(), temporaryFolder()]
  const names = await buildPortableFiles(one.path, 'abc')
  await buildPortableFiles(other.path, 'abc')
  const read = ({ path }: { path: string }, name: string) => readFileSync(join(path, name), 'utf8')
  expect(names).toContain('latchkey-agent.mjs')
  for (const name of names) expect(read(other, name)).toBe(read(one, name))
  const bill = JSON.parse(read(one, 'latchkey-agent.cdx.json')) as { components: Part[] }
  expect(validate(bill), ajv.errorsText(validate.errors)).toBe(true)
  expect(bill.components.map(({ name }) => name)).toEqual(['oauth4webapi'])
  expect(read(one, 'latchkey-agent.mjs')).toContain('Copyright (c) ')
  for (const name of names.filter((each) => each.endsWith('.mjs'))) {
    const imported = [...read(one, name).matchAll(/(?:\bfrom|\bimport)\s*\(?"([^"]+)"/g)].map(([, module]) => module)
    expect(imported.length).toBeGreaterThan(3)
    // A message of the library names one of its functions.
    const modules = imported.filter((module) => !module?.endsWith('()'))
    expect(modules.filter((module) => !module?.startsWith('node:'))).toEqual([])
  }
  one.remove()
  other.remove()
})
