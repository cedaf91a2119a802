// The files of a release: packages with the right digest, notes with the facts of an upgrade, and a signature.
import { afterAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { latestSchema } from '../../../../db/schema/migrate.ts'
import packageJson from '../../../../package.json' with { type: 'json' }
import { writeNotes } from '../../../../scripts/build/release/notes.ts'
import { fetchPackage, findLocked } from '../../../../scripts/build/release/npm-packages.ts'
import { digestFile, signFile } from '../../../../scripts/build/release/signature.ts'
import { bunVersion, targets } from '../../../../scripts/build/release/targets.ts'
import { listenLocally, temporaryFolder } from '../../../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

describe('a package of the registry', () => {
  test('is used if its digest is right, and refused and removed if not', async () => {
    const archive = await new Bun.Archive({ 'package/index.node': 'native' }, { compress: 'gzip' }).bytes()
    const asked: string[] = []
    const { url, listener } = await listenLocally(async (request) => {
      const { pathname, origin } = new URL(request.url)
      asked.push(decodeURIComponent(pathname))
      if (pathname.endsWith('.tgz')) return new Response(archive)
      const dist = { tarball: `${origin}/files/part-1.0.0.tgz` }
      const version = { name: '@libsql/part', version: '1.0.0', dist }
      return Response.json({ name: '@libsql/part', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } })
    })
    const before = process.env.npm_config_registry
    process.env.npm_config_registry = url
    try {
      const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`
      const part = { name: '@libsql/part', version: '1.0.0', integrity }
      const path = await fetchPackage(part, folder.path)
      expect(readFileSync(join(path, 'index.node'), 'utf8')).toBe('native')
      await fetchPackage(part, folder.path)
      expect(asked).toEqual(['/@libsql/part', '/files/part-1.0.0.tgz'])

      const wrong = fetchPackage({ ...part, integrity: 'sha512-AAAA' }, folder.path)
      expect(wrong).rejects.toThrow('it must be sha512-AAAA')
      await wrong.catch(() => {})
      expect(existsSync(join(folder.path, '@libsql+part@1.0.0.tgz'))).toBe(false)
    } finally {
      process.env.npm_config_registry = before
      if (before === undefined) delete process.env.npm_config_registry
      await listener.drain()
    }
  })

  test('with a native part is in bun.lock for every platform', () => {
    for (const { nativePart } of targets) expect(findLocked(nativePart).integrity).toMatch(/^sha512-.{88}$/)
    expect(new Set(targets.map(({ nativePart }) => nativePart)).size).toBe(targets.length)
    expect(() => findLocked('@libsql/plan9-x64')).toThrow('no digest')
  })
})

test('releases are built by the Bun that runs the tests', () => {
  expect(bunVersion).toBe(Bun.version)
})

test('the notes have commit, Bun, schema, the oldest version to upgrade from, and digests', () => {
  const notes = writeNotes('abc123', [{ name: 'latchkey-linux', bytes: 120_000_000, sha256: 'ff00' }])
  expect(notes).toStartWith(`# Latchkey ${packageJson.version}\n`)
  expect(notes).toContain(`| commit | \`abc123\` |\n| Bun | ${bunVersion} |\n| schema | ${latestSchema} |`)
  expect(notes).toContain('| upgrades from | 0.1.0 or later |')
  expect(notes).toContain('| `latchkey-linux` | 120.0 MB | `ff00` |')
  expect(notes).toContain('- token exchange (RFC 8693)')
})

const hasMinisign = Bun.which('minisign') !== null

test.skipIf(!hasMinisign)('a signature proves the digests, and no other text', async () => {
  const [secret, publicKey, sums] = ['key', 'key.pub', 'SHA256SUMS'].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ]
  const minisign = (...args: string[]) => spawnSync('minisign', args, { encoding: 'utf8' }).status
  expect(minisign('-G', '-W', '-f', '-p', publicKey, '-s', secret)).toBe(0)
  writeFileSync(sums, 'one\n')
  expect(await digestFile(sums)).toBe(createHash('sha256').update('one\n').digest('hex'))
  signFile(sums, secret, 'latchkey')
  expect(minisign('-V', '-p', publicKey, '-m', sums)).toBe(0)
  writeFileSync(sums, 'two\n')
  expect(minisign('-V', '-p', publicKey, '-m', sums)).toBe(1)
  expect(() => signFile(sums, join(folder.path, 'absent'), 'latchkey')).toThrow('could not sign')
})
