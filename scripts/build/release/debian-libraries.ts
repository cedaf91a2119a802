// The libraries that an image needs beside the program: the C library and libgcc from Debian 12, with fixed digests. When
// Debian mends one of them, put its new version and digests here (`apt-cache show libc6:amd64`), and release again.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from './compile.ts'

export type Architecture = 'amd64' | 'arm64'

/** A path below a mirror of Debian, and the SHA-256 of the file. */
type DebianFile = { path: string; sha256: string }

const glibc = 'pool/main/g/glibc/libc6_2.36-9+deb12u14'
const libgcc = 'pool/main/g/gcc-12/libgcc-s1_12.2.0-14+deb12u1'

const files: Record<Architecture, readonly DebianFile[]> = {
  amd64: [
    { path: `${glibc}_amd64.deb`, sha256: 'ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf' },
    { path: `${libgcc}_amd64.deb`, sha256: '3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7' },
  ],
  arm64: [
    { path: `${glibc}_arm64.deb`, sha256: '01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4' },
    { path: `${libgcc}_arm64.deb`, sha256: '576926b283613db80168ddf76380a3bd877602778cf0d226caa7bfbfa71eacf3' },
  ],
}

/** Debian keeps the newest version of a package, its archive keeps all. */
const mirrors = [
  process.env.DEBIAN_MIRROR ?? 'https://deb.debian.org/debian',
  'https://snapshot.debian.org/archive/debian/20261120T000000Z',
]

/** Returns the files of each library as an archive for tar, with its copyright. Needs `xz`. Fails if a digest differs. */
export async function fetchLibraries(architecture: Architecture): Promise<Buffer[]> {
  const archives: Buffer[] = []
  for (const file of files[architecture]) archives.push(unpack(await fetchFile(file)))
  return archives
}

async function fetchFile({ path, sha256 }: DebianFile, cache = join(root, 'node_modules/.cache/release')) {
  const kept = join(cache, basename(path))
  if (!existsSync(kept)) {
    const response = await firstOf(mirrors.map((mirror) => `${mirror}/${path.replaceAll('+', '%2b')}`))
    mkdirSync(cache, { recursive: true })
    await Bun.write(`${kept}.part`, await response.arrayBuffer())
    renameSync(`${kept}.part`, kept)
  }
  // Checked in every run: the folder of an earlier run is not trusted.
  const bytes = readFileSync(kept)
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (digest === sha256) return bytes
  rmSync(kept)
  throw new Error(`${basename(path)} has the SHA-256 ${digest}; it must be ${sha256}`)
}

async function firstOf(urls: readonly string[]): Promise<Response> {
  const failures: string[] = []
  for (const url of urls) {
    const response = await fetch(url).catch((error: Error) => error)
    if (response instanceof Response && response.ok) return response
    failures.push(`${url}: ${response instanceof Response ? `status ${response.status}` : response.message}`)
  }
  throw new Error(
    `A library of Debian could not be fetched: ${failures.join('; ')}. DEBIAN_MIRROR names another mirror`,
  )
}

/** Returns the archive with the files of a Debian package (deb(5)). */
export function unpack(deb: Buffer): Buffer {
  const magicBytes = 8
  const headerBytes = 60
  for (let at = magicBytes; at < deb.length; ) {
    const [name = '', size = ''] = [deb.toString('latin1', at, at + 16), deb.toString('latin1', at + 48, at + 58)]
    const content = deb.subarray(at + headerBytes, at + headerBytes + Number(size))
    if (name.startsWith('data.tar.xz')) return decompress(content)
    at += headerBytes + content.length + (content.length % 2)
  }
  throw new Error('A package of Debian has no data.tar.xz')
}

function decompress(bytes: Buffer): Buffer {
  const { error, status, stdout } = spawnSync('xz', ['-dc'], { input: bytes, maxBuffer: 100_000_000 })
  if (error === undefined && status === 0) return stdout
  throw new Error(`xz could not decompress a package (${error?.message ?? `status ${status}`}); install xz-utils`)
}
