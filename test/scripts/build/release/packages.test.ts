// Packages for Linux and images: read by the programs that will install them, with a small file in place of the program.
import { afterAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { cpio, typedMode } from '../../../../scripts/build/release/cpio.ts'
import { deb } from '../../../../scripts/build/release/deb.ts'
import { unpack } from '../../../../scripts/build/release/debian-libraries.ts'
import { type Entry, gzip } from '../../../../scripts/build/release/entry.ts'
import { ociArchive } from '../../../../scripts/build/release/oci.ts'
import { packageOf } from '../../../../scripts/build/release/package.ts'
import { rpm } from '../../../../scripts/build/release/rpm.ts'
import { tar } from '../../../../scripts/build/release/tar.ts'
import { temporaryFolder } from '../../../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const has = (program: string) => Bun.which(program) !== null
const time = 1_790_000_000
const program = Buffer.from('#!/bin/sh\necho "a program"\n')
const contents = { program, licenses: 'MIT\n', manual: '.TH LATCHKEY 1\n', time }
const made = packageOf({ ...contents, zshFolder: 'usr/share/zsh/vendor-completions' })
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

function write(name: string, bytes: Uint8Array): string {
  const path = join(folder.path, name)
  writeFileSync(path, bytes)
  return path
}

function run(...[name, ...args]: [string, ...string[]]): string {
  const { status, stdout, stderr } = spawnSync(name, args, { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } })
  expect({ name, status, stderr }).toMatchObject({ status: 0 })
  return stdout
}

describe('an archive', () => {
  const anyEntries = fc.uniqueArray(
    fc.record({
      path: fc.stringMatching(/^[a-z]{1,20}(\/[a-z]{1,20}){0,3}x$/),
      mode: fc.constantFrom(0o600, 0o644, 0o755),
      content: fc.uint8Array({ maxLength: 2_000 }),
    }),
    { selector: ({ path }) => path.split('/')[0], maxLength: 6 },
  )

  test('for tar gives back every file', async () => {
    await fc.assert(
      fc.asyncProperty(anyEntries, async (entries) => {
        const files = await new Bun.Archive(tar({ entries, time })).files()
        const found = await Promise.all([...files].map(async ([path, file]) => [path, await file.bytes()] as const))
        expect(new Map(found)).toEqual(new Map(entries.map(({ path, content }) => [path, content])))
      }),
      { numRuns: 50 },
    )
  })

  test('for tar has modes, time, owner and links as tar reads them', () => {
    const entries: Entry[] = [
      { path: 'etc/', mode: 0o750, owner: 65_532 },
      { path: 'etc/a', mode: 0o640, content: program },
      { path: 'etc/b', mode: 0o777, link: 'a' },
    ]
    const listed = run('tar', '--numeric-owner', '--utc', '-tvf', write('a.tar', tar({ entries, time })))
    expect(
      listed
        .trim()
        .split('\n')
        .map((line) => line.replaceAll(/ +/g, ' ')),
    ).toEqual([
      'drwxr-x--- 65532/65532 0 2026-09-21 14:13 etc/',
      `-rw-r----- 0/0 ${program.length} 2026-09-21 14:13 etc/a`,
      'lrwxrwxrwx 0/0 0 2026-09-21 14:13 etc/b -> a',
    ])
  })

  test('for tar refuses a path that the format cannot hold', () => {
    expect(() => tar({ entries: [{ path: 'a'.repeat(101), mode: 0o644 }], time })).toThrow('too long')
  })

  test('for cpio gives every part a length that is a multiple of four', () => {
    fc.assert(
      fc.property(anyEntries, (entries) => {
        expect(cpio({ entries, time }).length % 4).toBe(0)
      }),
    )
  })

  test('is compressed without time and system in the header', () => {
    const compressed = gzip(program)
    expect([...compressed.subarray(4, 10)]).toEqual([0, 0, 0, 0, 0, 255])
    expect(gunzipSync(compressed).equals(program)).toBe(true)
  })
})

describe('a package', () => {
  test('starts the program that it installs, from settings that it installs', () => {
    const unit = made.entries.find(({ path }) => path.endsWith('latchkey.service'))?.content?.toString() ?? ''
    const started = [...unit.matchAll(/^Exec\w+=(\S+) .*--config (\S+)/gm)].flatMap(([, path, config]) => [
      path,
      config,
    ])
    const installed = made.entries.map(({ path }) => `/${path}`)
    expect(started.length).toBeGreaterThanOrEqual(10)
    expect(started.filter((path) => !installed.includes(path ?? ''))).toEqual([])
  })

  test('has scripts that sh can read', () => {
    for (const text of Object.values(made.scripts)) run('sh', '-n', write('script', Buffer.from(text)))
  })

  test('is the same at every build', () => {
    expect(deb(made, 'amd64').equals(deb(made, 'amd64'))).toBe(true)
    expect(rpm(made, 'x86_64').equals(rpm(made, 'x86_64'))).toBe(true)
  })
})

describe.skipIf(!has('dpkg-deb'))('a package for Debian (needs dpkg-deb)', () => {
  const path = write('latchkey.deb', deb(made, 'amd64'))

  test('says what it is and what it needs', () => {
    const fields = run('dpkg-deb', '--field', path)
    for (const line of ['Package: latchkey', 'Architecture: amd64', 'Depends: libc6 (>= 2.18), libgcc-s1, passwd'])
      expect(fields.split('\n')).toContain(line)
  })

  test('has every folder, and files of root with their modes and digests', () => {
    const lines = run('dpkg-deb', '--contents', path).trim().split('\n')
    const listed = lines.map((line) => line.split(/ +/))
    const modes = new Map(listed.map(([mode, owner, , , , name]) => [name, `${mode} ${owner}`]))
    expect(modes.get('./usr/bin/latchkey')).toBe('-rwxr-xr-x 0/0')
    expect(modes.get('./etc/latchkey/latchkey.conf')).toBe('-rw-r----- 0/0')
    for (const name of modes.keys()) {
      const parent = `${name?.replace(/[^/]+\/?$/, '')}`
      expect([name, modes.has(parent) || name === './']).toEqual([name, true])
    }
    const root = join(folder.path, 'deb')
    run('dpkg-deb', '--raw-extract', path, root)
    expect(spawnSync('md5sum', ['-c', 'DEBIAN/md5sums'], { cwd: root }).status).toBe(0)
    expect(readFileSync(join(root, 'DEBIAN/conffiles'), 'utf8')).toBe('/etc/latchkey/latchkey.conf\n')
    expect(run(join(root, 'usr/bin/latchkey'))).toBe('a program\n')
  })

  test('whose archive is compressed by xz, as those of Debian are, is unpacked; without one it is refused', () => {
    const source = join(folder.path, 'source')
    mkdirSync(join(source, 'DEBIAN'), { recursive: true })
    chmodSync(join(source, 'DEBIAN'), 0o755)
    writeFileSync(
      join(source, 'DEBIAN/control'),
      'Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a\nDescription: a\n',
    )
    writeFileSync(join(source, 'library'), program)
    const packed = join(folder.path, 'xz.deb')
    run('dpkg-deb', '--root-owner-group', '-Zxz', '--build', source, packed)
    expect(run('tar', '-xOf', write('xz.tar', unpack(readFileSync(packed))), './library')).toBe(program.toString())
    expect(() => unpack(readFileSync(path))).toThrow('no data.tar.xz')
  })
})

test.skipIf(!has('rpm'))('a package for RPM is complete, and rpm reads its files as they are (needs rpm)', () => {
  const path = write('latchkey.rpm', rpm(made, 'x86_64'))
  // It must be known without a database of packages, and without a key.
  expect(run('rpm', '-K', '--nosignature', path)).toContain('digests OK')
  const files = run('rpm', '-qp', '--nosignature', '--qf', '[%{FILENAMES} %{FILEMODES:octal} %{FILEDIGESTS}\\n]', path)
  const expected = made.entries.map((entry) => {
    const digest = entry.content === undefined ? '' : sha256(entry.content)
    return `/${entry.path.replace(/\/$/, '')} ${typedMode(entry).toString(8)} ${digest}`
  })
  expect(files.trimEnd().split('\n').toSorted()).toEqual(expected.toSorted())
  expect(run('rpm', '-qp', '--configfiles', path)).toBe('/etc/latchkey/latchkey.conf\n')
  expect(run('rpm', '-qp', '--requires', path).split('\n')).toContain('libgcc_s.so.1()(64bit)')
  expect(run('rpm', '-qp', '--scripts', path)).toContain('useradd --system')

  const broken = readFileSync(path)
  broken[broken.length - 20] = (broken[broken.length - 20] ?? 0) ^ 1
  expect(spawnSync('rpm', ['-K', '--nosignature', write('broken.rpm', broken)]).status).not.toBe(0)
})

describe('an image', () => {
  const library = tar({ entries: [{ path: 'lib/', mode: 0o755 }], time })
  const images = (['amd64', 'arm64'] as const).map((architecture) => ({ architecture, libraries: [library], program }))
  const archive = ociArchive(images, { commit: 'abc', time })

  test('has one name for its platforms, and every part has the digest by which it is named', async () => {
    const files = await new Bun.Archive(archive).files()
    const read = async (name: string) => Buffer.from((await files.get(name)?.bytes()) ?? [])
    type Part = { digest: string; size: number; platform?: object; annotations?: object }
    const blob = async ({ digest, size }: Part) => {
      const bytes = await read(`blobs/sha256/${digest.slice('sha256:'.length)}`)
      expect([`sha256:${sha256(bytes)}`, bytes.length]).toEqual([digest, size])
      return bytes
    }
    const json = async (part: Part) => JSON.parse((await blob(part)).toString())
    const { manifests } = JSON.parse((await read('index.json')).toString()) as { manifests: Part[] }
    expect(manifests.map(({ annotations }) => annotations)).toEqual([
      { 'org.opencontainers.image.ref.name': 'latchkey:0.1.0', 'io.containerd.image.name': 'localhost/latchkey:0.1.0' },
    ])
    const platforms = ((await json(manifests[0] as Part)) as { manifests: Part[] }).manifests
    expect(platforms.map(({ platform }) => platform)).toEqual([
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ])
    for (const platform of platforms) {
      const { config, layers } = (await json(platform)) as { config: Part; layers: Part[] }
      const unpacked = (await Promise.all(layers.map(blob))).map((bytes) => gunzipSync(bytes))
      const described = await json(config)
      expect(described.rootfs.diff_ids).toEqual(unpacked.map((bytes) => `sha256:${sha256(bytes)}`))
      expect(described.config).toMatchObject({
        User: '65532:65532',
        Entrypoint: ['/usr/local/bin/latchkey'],
        Cmd: ['serve'],
      })
      const own = run('tar', '--numeric-owner', '-tvf', write('layer.tar', unpacked.at(-1) ?? Buffer.alloc(0)))
      expect(own).toMatch(/^drwx------ 65532\/65532 .* var\/lib\/latchkey\/$/m)
      expect(own).toMatch(/^drwxrwxrwt 0\/0 .* tmp\/$/m)
      expect(own).toMatch(/^-rwxr-xr-x 0\/0 .* usr\/local\/bin\/latchkey$/m)
    }
  })

  test.skipIf(!has('skopeo'))('is copied by skopeo for each platform (needs skopeo)', () => {
    const path = write('image.tar', archive)
    for (const architecture of ['amd64', 'arm64']) {
      const to = join(folder.path, architecture)
      run('skopeo', '--override-arch', architecture, '--insecure-policy', 'copy', `oci-archive:${path}`, `dir:${to}`)
      const inspected = JSON.parse(run('skopeo', 'inspect', `dir:${to}`))
      expect(inspected).toMatchObject({ Architecture: architecture, Os: 'linux', Created: '2026-09-21T14:13:20Z' })
    }
  })
})
