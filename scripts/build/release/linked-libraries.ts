// What publishers link into the two compiled parts of the program: the Bun runtime, and the native part of libSQL.

export type LinkedLibrary = {
  name: string
  license: string /** Key in `process.versions` of Bun, if it is there. */
  key?: string
}

/** From LICENSE.md of Bun. Bun reports the versions of some libraries itself. */
export const linkedIntoBun: readonly LinkedLibrary[] = [
  { name: 'WebKit (JavaScriptCore)', license: 'LGPL-2.0-or-later', key: 'webkit' },
  { name: 'boringssl', license: 'several, see its LICENSE', key: 'boringssl' },
  { name: 'brotli', license: 'MIT' },
  { name: 'c-ares', license: 'MIT', key: 'ares' },
  { name: 'highway', license: 'Apache-2.0' },
  { name: 'icu', license: 'Unicode-3.0', key: 'icu' },
  { name: 'libarchive', license: 'several, see its COPYING', key: 'libarchive' },
  { name: 'libbase64', license: 'BSD-2-Clause' },
  { name: 'libdeflate', license: 'MIT', key: 'libdeflate' },
  { name: 'libjpeg-turbo', license: 'BSD-3-Clause' },
  { name: 'libspng', license: 'BSD-2-Clause' },
  { name: 'libwebp', license: 'BSD-3-Clause' },
  { name: 'llhttp', license: 'MIT', key: 'llhttp' },
  { name: 'lol-html', license: 'BSD-3-Clause', key: 'lolhtml' },
  { name: 'ls-hpack', license: 'MIT', key: 'lshpack' },
  { name: 'ls-qpack', license: 'MIT' },
  { name: 'lsquic', license: 'MIT' },
  { name: 'mimalloc', license: 'MIT', key: 'mimalloc' },
  { name: 'picohttpparser', license: 'MIT', key: 'picohttpparser' },
  { name: 'simdutf', license: 'Apache-2.0' },
  { name: 'sqlite', license: 'blessing', key: 'sqlite' },
  { name: 'tinycc', license: 'LGPL-2.1-or-later', key: 'tinycc' },
  { name: 'uSockets', license: 'Apache-2.0', key: 'usockets' },
  { name: 'uWebSockets', license: 'Apache-2.0', key: 'uwebsockets' },
  { name: 'zlib-ng', license: 'Zlib', key: 'zlib' },
  { name: 'zstd', license: 'BSD-3-Clause', key: 'zstd' },
]

/**
 * Lists the Rust packages that a native part names in its messages, as `name` and `version`, sorted. Its publisher gives
 * no list, so packages without messages are missing.
 */
export function findCrates(nativePart: Buffer): { name: string; version: string }[] {
  const paths = nativePart.toString('latin1').matchAll(/registry\/src\/[^/]+\/([a-z0-9_-]+?)-(\d+\.\d+\.\d+)\//gi)
  const found = new Map([...paths].map(([, name = '', version = '']) => [`${name}@${version}`, { name, version }]))
  return [...found.entries()].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, crate]) => crate)
}
