// Notes, checkpoints, tiles, bundles and proofs: against the log that Tessera made with a known key, byte for byte, the example of the
// note specification, and hostile text.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { checkpointText, openCheckpoint, parseCheckpoint } from '../../../src/audit-log/transparency/checkpoint.ts'
import {
  composeHash,
  hashLeaf,
  inclusionParts,
  isIncluded,
  rootParts,
} from '../../../src/audit-log/transparency/merkle.ts'
import {
  checkSignature,
  createSignerKey,
  formatNote,
  parseNote,
  parseVerifierKey,
  signNote,
  type VerifierKey,
} from '../../../src/audit-log/transparency/note.ts'
import { formatProof, parseProof } from '../../../src/audit-log/transparency/proof.ts'
import {
  formatBundle,
  parseBundle,
  parseTilePath,
  splitTile,
  tileOf,
  tilePath,
  tilesOf,
} from '../../../src/audit-log/transparency/tiles.ts'
import tessera from '../../fixtures/transparency/tessera-log.json'

const words = 'one two three four five six seven eit nain ten ileven twelf threeten fourten fivten'.split(' ')
const entries = words.map((word) => Buffer.from(word))
const leaves = entries.map(hashLeaf)
const key = createSignerKey('example.com/log/testdata', 'log', Buffer.from(tessera.seed, 'base64'))
const files: Record<string, string> = tessera.files
const rootOf = (size: number) =>
  composeHash(
    rootParts(size).map(({ level, index }) => {
      const within = leaves.slice(index * 2 ** level, (index + 1) * 2 ** level)
      return composeHash(level === 0 ? within : [composePerfect(within)])
    }),
  )
function composePerfect(within: Uint8Array[]): Uint8Array {
  const middle = within.length / 2
  return within.length === 1
    ? composeHash(within)
    : composeHash([composePerfect(within.slice(0, middle)), composePerfect(within.slice(middle))])
}
function signed(size: number): string {
  const text = checkpointText({ origin: key.name, size, root: rootOf(size) })
  return formatNote({ text, signatures: [signNote(text, key, 0)] })
}
const keyOf = (text: string) => parseVerifierKey(text) as VerifierKey

describe('the log of Tessera', () => {
  test('has the key that its seed makes', () => {
    expect(key.text).toBe(tessera.key)
    expect(keyOf(tessera.key).id).toBe(key.id)
  })

  test.each(Array.from({ length: 16 }, (_, size) => size))('has checkpoint %i, byte for byte', (size) => {
    expect(signed(size)).toBe(files[`checkpoint.${size}`] ?? '')
    expect(openCheckpoint(signed(size), keyOf(tessera.key))).toMatchObject({ size, origin: key.name })
  })

  test('has these tiles and bundles, byte for byte, and no others', () => {
    const made: Record<string, string> = {}
    for (let size = 1; size <= 15; size += 1)
      for (const tile of tilesOf(size, size - 1)) {
        const bytes =
          tile.level === 'entries' ? formatBundle(entries.slice(0, size)) : Buffer.concat(leaves.slice(0, size))
        made[tilePath(tile)] = Buffer.from(bytes).toString('base64')
      }
    expect(made).toEqual(Object.fromEntries(Object.entries(files).filter(([name]) => name.startsWith('tile/'))))
  })
})

describe('notes', () => {
  const example =
    'This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n'
  const exampleKey = keyOf('example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k')

  test('of the specification verify, and fail with a changed letter', () => {
    const note = parseNote(example)
    expect(note && checkSignature(note, exampleKey)).toEqual({ at: undefined })
    const changed = parseNote(example.replace('message', 'massage'))
    expect(changed && checkSignature(changed, exampleKey)).toBe('wrong')
    expect(note && checkSignature(note, key)).toBe('missing')
  })

  test('carry the time of a witness, which its signature covers', () => {
    const witness = createSignerKey('office', 'witness', Buffer.alloc(32, 7))
    const text = 'a\nb\n'
    const cosigned = parseNote(formatNote({ text, signatures: [signNote(text, witness, 1_679_315_147_900)] }))
    expect(cosigned && checkSignature(cosigned, keyOf(witness.text))).toEqual({ at: 1_679_315_147_000 })
    const later = signNote(text, witness, 1_679_315_148_000)
    const mixed = Buffer.from(later.line.split(' ')[2] ?? '', 'base64')
    mixed[11] = (mixed[11] ?? 0) ^ 1
    const forged = parseNote(`${text}\n— office ${mixed.toString('base64')}\n`)
    expect(forged && checkSignature(forged, keyOf(witness.text))).toBe('wrong')
  })

  test.each([
    ['no empty line', example.replace('\n\n', '\n')],
    ['no last newline', example.slice(0, -1)],
    ['no signature', 'This is an example message.\n\n'],
    ['a control character', example.replace('an', '\u0007an')],
    ['a hyphen for the dash', example.replace('—', '-')],
    ['a plus in a name', example.replace('/foo', '+foo')],
    ['base64 with loose bits', example.replace('aQM=', 'aQN=')],
    ['65 signatures', example + example.slice(example.indexOf('—')).repeat(64)],
    ['more than 128 KiB', `${'a'.repeat(140_000)}${example}`],
  ])('are refused with %s', (_, text) => {
    expect(parseNote(text)).toBeUndefined()
  })

  test.each([
    ['another id', tessera.key.replace('33d7b496', '33d7b497')],
    ['another name', tessera.key.replace('example', 'examplf')],
    ['another type', tessera.key.replace('+Ae', '+Ce')],
    ['a short key', tessera.key.slice(0, -4)],
    ['no name', tessera.key.slice('example.com/log/testdata'.length)],
  ])('verifier keys with %s are refused', (_, text) => {
    expect(parseVerifierKey(text)).toBeUndefined()
  })

  test('survive any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        parseNote(text)
        parseVerifierKey(text)
        parseCheckpoint(text)
        parseProof(text)
        parseTilePath(text)
      }),
    )
  })
})

describe('checkpoints', () => {
  const change = (from: string, to: string) => signed(12).replace(from, to)
  test.each([
    ['a zero before its size', change('\n12\n', '\n012\n')],
    ['a negative size', change('\n12\n', '\n-12\n')],
    ['a size that a number cannot hold', change('\n12\n', '\n9007199254740992\n')],
    ['a short root', change('\n12\n', '\n12\nAAAA')],
    ['an empty origin', change(key.name, '')],
  ])('with %s are malformed', (_, text) => {
    expect(openCheckpoint(text, key)).toBe('malformed')
  })

  test('are judged by the key of their reader', () => {
    const stranger = createSignerKey(key.name, 'log', Buffer.alloc(32, 1))
    const elsewhere = createSignerKey('example.com/other', 'log', Buffer.from(tessera.seed, 'base64'))
    expect(openCheckpoint(signed(12), stranger)).toBe('unsigned')
    expect(openCheckpoint(signed(12), elsewhere)).toBe('other_log')
    expect(openCheckpoint(change('\n12\n', '\n13\n'), key)).toBe('wrong_signature')
  })
})

describe('tiles', () => {
  test.each([
    [{ level: 0, index: 0, width: 256 }, 'tile/0/000'],
    [{ level: 2, index: 1_234_067, width: 256 }, 'tile/2/x001/x234/067'],
    [{ level: 'entries' as const, index: 273, width: 112 }, 'tile/entries/273.p/112'],
  ])('%o is at %s', (tile, path) => {
    expect(tilePath(tile)).toBe(path)
    expect(parseTilePath(path)).toEqual(tile)
  })

  test.each([
    'tile/0/0',
    'tile/00/000',
    'tile/0/x000/001',
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/000.p/01',
    'tile/0/../000',
    'tile/x/000',
    'tile/0/000/',
    'checkpoint',
  ])('none is at %s', (path) => {
    expect(parseTilePath(path)).toBeUndefined()
  })

  test('of 70,000 entries are those of the specification', () => {
    const tiles = [...tilesOf(70_000)].filter(({ level }) => level !== 'entries')
    expect(tiles.filter(({ level, width }) => level === 0 && width === 256).length).toBe(273)
    expect(tiles.filter(({ level, width }) => level !== 0 || width < 256)).toEqual([
      { level: 0, index: 273, width: 112 },
      { level: 1, index: 0, width: 256 },
      { level: 1, index: 1, width: 17 },
      { level: 2, index: 0, width: 1 },
    ])
  })

  test('that a growing log adds are those of its last size, whatever was in between', () => {
    fc.assert(
      fc.property(fc.nat(200_000), fc.nat(2_000), (size, more) => {
        const before = new Set([...tilesOf(size)].map(tilePath))
        const added = [...tilesOf(size + more, size)].map(tilePath)
        const after = [...tilesOf(size + more)].map(tilePath)
        expect(new Set(added.filter((path) => !before.has(path)))).toEqual(
          new Set(after.filter((path) => !before.has(path))),
        )
      }),
      { numRuns: 30 },
    )
  })

  test('hold each subtree of a proof', () => {
    const parts = inclusionParts(66_000, 70_000).flat()
    for (const subtree of parts) {
      const { tile, within } = tileOf(subtree, 70_000)
      expect((within.index + 1) * 2 ** within.level).toBeLessThanOrEqual(tile.width)
      expect([...tilesOf(70_000)]).toContainEqual(tile)
    }
  })

  test('and bundles of a different width from their name are refused', () => {
    const bundle = formatBundle(entries)
    expect(parseBundle(bundle, 15)?.map(String)).toEqual(words)
    for (const width of [14, 16]) expect(parseBundle(bundle, width)).toBeUndefined()
    expect(parseBundle(bundle.subarray(0, -1), 15)).toBeUndefined()
    expect(splitTile(Buffer.alloc(64), 2)?.length).toBe(2)
    expect(splitTile(Buffer.alloc(65), 2)).toBeUndefined()
    expect(() => formatBundle([Buffer.alloc(65_536)])).toThrow(RangeError)
  })
})

describe('proofs as files', () => {
  const hashes = inclusionParts(6, 15).map((part) =>
    composeHash(
      part.map(({ level, index }) => composePerfect(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level))),
    ),
  )
  const text = formatProof({ extra: Buffer.from('row'), index: 6, hashes, checkpoint: signed(15) })

  test('are read back, and verify', () => {
    const proof = parseProof(text)
    expect(proof).toMatchObject({ index: 6, checkpoint: { size: 15 } })
    expect(String(proof?.extra)).toBe('row')
    const { root } = proof?.checkpoint ?? { root: Buffer.alloc(0) }
    const inclusion = { index: 6, size: 15, leafHash: hashLeaf(Buffer.from('seven')), root, proof: proof?.hashes ?? [] }
    expect(isIncluded(inclusion)).toBe(true)
    expect(parseProof(text.replace(/extra .*\n/, ''))?.extra).toBeUndefined()
  })

  test.each([
    ['another version', text.replace('@v1', '@v2')],
    ['a zero before the index', text.replace('index 6', 'index 06')],
    ['no index', text.replace('index 6\n', '')],
    ['extra that is not base64', text.replace('extra ', 'extra *')],
    ['a short hash', text.replace(/index 6\n..../, 'index 6\n')],
    ['no checkpoint', text.slice(0, text.indexOf('\n\n') + 2)],
  ])('are refused with %s', (_, changed) => {
    expect(parseProof(changed)).toBeUndefined()
  })
})
