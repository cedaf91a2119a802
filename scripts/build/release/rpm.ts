// Packages for RHEL, Fedora and SUSE (RPM format 4): a lead, a header of digests, a header of facts, and the files as cpio.
import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { cpio, typedMode } from './cpio.ts'
import { isSetting } from './deb.ts'
import { gzip, padding } from './entry.ts'
import type { Package } from './package.ts'

/** Returns the package. */
export function rpm(made: Package, arch: string): Buffer {
  const archive = cpio(made)
  const payload = gzip(archive)
  const header = section(63, [...facts(made, arch), ...filesOf(made), ...digestsOf(payload)])
  const digests = section(62, [
    text(269, hex('sha1', header)),
    text(273, hex('sha256', header)),
    numbers(1000, [header.length + payload.length]),
    { tag: 1004, type: 7, count: 16, data: createHash('md5').update(header).update(payload).digest() },
    numbers(1007, [archive.length]),
  ])
  return Buffer.concat([lead(made), digests, padding(digests.length, 8), header, payload])
}

/** One entry of a header: the number of the tag, the type of its values, how many, and their bytes. */
type Tag = { tag: number; type: number; count: number; data: Buffer }

const hex = (algorithm: string, bytes: Uint8Array) => createHash(algorithm).update(bytes).digest('hex')
const strings = (tag: number, type: number, values: readonly string[]): Tag => ({
  tag,
  type,
  count: values.length,
  data: Buffer.from(values.map((value) => `${value}\0`).join('')),
})
const text = (tag: number, value: string) => strings(tag, 6, [value])
const texts = (tag: number, values: readonly string[]) => strings(tag, 8, values)
/** A text that could be translated. */
const prose = (tag: number, value: string) => strings(tag, 9, [value])

function numbers(tag: number, values: readonly number[]): Tag {
  const data = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) data.writeUInt32BE(value, 4 * index)
  return { tag, type: 4, count: values.length, data }
}

function shorts(tag: number, values: readonly number[]): Tag {
  const data = Buffer.alloc(2 * values.length)
  for (const [index, value] of values.entries()) data.writeUInt16BE(value, 2 * index)
  return { tag, type: 3, count: values.length, data }
}

function facts({ name, version, summary, description, license, scripts, time, entries }: Package, arch: string): Tag[] {
  const rpmlib = ['CompressedFileNames 3.0.4-1', 'FileDigests 4.6.0-1', 'PayloadFilesHavePrefix 4.0-1']
  const needed = [
    ...rpmlib.map((each) => [`rpmlib(${each.split(' ')[0]})`, each.split(' ')[1] ?? '', 0x0100000a] as const),
    ...['/bin/sh', 'libgcc_s.so.1()(64bit)', 'shadow-utils'].map((each) => [each, '', 0] as const),
  ]
  const scriptsByTag: [tag: number, program: number, script: string][] = [
    [1024, 1086, scripts.afterInstall],
    // An upgrade removes the older package too, and passes 1.
    [1025, 1087, `[ "$1" = 0 ] || exit 0\n${scripts.beforeRemove}`],
    [1026, 1088, scripts.afterRemove],
  ]
  return [
    texts(100, ['C']),
    text(1000, name),
    text(1001, version),
    text(1002, '1'),
    prose(1004, summary),
    prose(1005, description),
    numbers(1006, [time]),
    text(1007, 'localhost'),
    numbers(1009, [entries.reduce((sum, { content }) => sum + (content?.length ?? 0), 0)]),
    text(1014, license),
    prose(1016, 'Unspecified'),
    text(1021, 'linux'),
    text(1022, arch),
    ...scriptsByTag.flatMap(([tag, program, script]) => [text(tag, script), text(program, '/bin/sh')]),
    text(1044, `${name}-${version}-1.src.rpm`),
    texts(1047, [name]),
    numbers(1112, [8]),
    texts(1113, [`${version}-1`]),
    numbers(
      1048,
      needed.map(([, , flags]) => flags),
    ),
    texts(
      1049,
      needed.map(([each]) => each),
    ),
    texts(
      1050,
      needed.map(([, least]) => least),
    ),
    text(1064, '4.16.0'),
    text(5062, 'utf-8'),
  ]
}

function filesOf({ entries, time }: Package): Tag[] {
  const paths = entries.map(({ path }) => `/${path.replace(/\/$/, '')}`)
  const folders = [...new Set(paths.map((path) => `${dirname(path)}/`))]
  const all = (value: string) => entries.map(() => value)
  const isConfig = 1 | 16
  return [
    numbers(
      1028,
      entries.map((entry) => entry.content?.length ?? 0),
    ),
    shorts(1030, entries.map(typedMode)),
    shorts(
      1033,
      entries.map(() => 0),
    ),
    numbers(
      1034,
      entries.map(() => time),
    ),
    texts(
      1035,
      entries.map((entry) => (entry.content === undefined ? '' : hex('sha256', entry.content))),
    ),
    texts(1036, all('')),
    numbers(
      1037,
      entries.map((entry) => (isSetting(entry) ? isConfig : 0)),
    ),
    texts(1039, all('root')),
    texts(1040, all('root')),
    numbers(
      1045,
      entries.map(() => 0xffffffff),
    ),
    numbers(
      1095,
      entries.map(() => 1),
    ),
    numbers(
      1096,
      entries.map((_, index) => index + 1),
    ),
    texts(1097, all('')),
    numbers(
      1116,
      paths.map((path) => folders.indexOf(`${dirname(path)}/`)),
    ),
    texts(
      1117,
      paths.map((path) => basename(path)),
    ),
    texts(1118, folders),
    numbers(5011, [8]),
  ]
}

function digestsOf(payload: Buffer): Tag[] {
  return [
    text(1124, 'cpio'),
    text(1125, 'gzip'),
    text(1126, '6'),
    texts(5092, [hex('sha256', payload)]),
    numbers(5093, [8]),
  ]
}

/** A header: entries in the order of their tags, and a region around all, which `tag` names. */
function section(tag: number, tags: readonly Tag[]): Buffer {
  const sorted = tags.toSorted((one, other) => one.tag - other.tag)
  const index: Buffer[] = []
  const store: Buffer[] = []
  let offset = 0
  for (const { tag: number, type, count, data } of sorted) {
    const gap = padding(offset, type === 4 ? 4 : type === 3 ? 2 : 1)
    store.push(gap, data)
    index.push(words(number, type, offset + gap.length, count))
    offset += gap.length + data.length
  }
  const trailer = words(tag, 7, -16 * (sorted.length + 1), 16)
  const start = Buffer.concat([
    Buffer.from('8eade80100000000', 'hex'),
    words(sorted.length + 1, offset + trailer.length),
  ])
  return Buffer.concat([start, words(tag, 7, offset, 16), ...index, ...store, trailer])
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeInt32BE(value, 4 * index)
  return bytes
}

/** What only very old programs read. */
function lead({ name, version }: Package): Buffer {
  const bytes = Buffer.alloc(96)
  bytes.write('edabeedb0300', 0, 'hex')
  bytes.writeUInt16BE(1, 8)
  bytes.write(`${name}-${version}-1`, 10)
  bytes.writeUInt16BE(1, 76)
  bytes.writeUInt16BE(5, 78)
  return bytes
}
