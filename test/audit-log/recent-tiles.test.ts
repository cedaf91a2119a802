// Tiles that a process has just appended are published as the database would give them, and only those of which it appended every leaf.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createWriter } from '../../db/write/write.ts'
import { createAuditLog } from '../../src/audit-log/audit-log.ts'
import { publish } from '../../src/audit-log/folder.ts'
import { createRecentTiles } from '../../src/audit-log/recent-tiles.ts'
import { hashLeafText } from '../../src/audit-log/transparency/merkle.ts'
import { parseBundle } from '../../src/audit-log/transparency/tiles.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { auditRow, createDatabase, insertOrganizationRows, organizationRows } from '../support/rows.ts'

const textsFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => `leaf ${first + index}`)
const add = (recent: ReturnType<typeof createRecentTiles>, first: number, count: number) => {
  const texts = textsFrom(first, count)
  recent.add(first, texts, texts.map(hashLeafText))
}

test('a tile is there once all of its leaves came, in however many parts', () => {
  const recent = createRecentTiles()
  for (const [first, count] of [
    [200, 56],
    [256, 100],
    [356, 155],
  ] as const)
    add(recent, first, count)
  expect([recent.find(0), recent.find(1)]).toEqual([undefined, undefined])
  add(recent, 511, 300)
  const { bundle, hashes } = recent.find(1) ?? { bundle: Buffer.alloc(0), hashes: Buffer.alloc(0) }
  expect(parseBundle(bundle, 256)?.map((entry) => Buffer.from(entry).toString())).toEqual(textsFrom(256, 256))
  expect(Buffer.concat(textsFrom(256, 256).map(hashLeafText)).equals(hashes)).toBe(true)
  expect([recent.find(0), recent.find(3)]).toEqual([undefined, undefined])
  recent.clear()
  expect(recent.find(1)).toBeUndefined()
})

test('a tile in which another process appended a leaf is not there', () => {
  const recent = createRecentTiles()
  add(recent, 0, 100)
  add(recent, 101, 411)
  expect(recent.find(0)).toBeUndefined()
  expect(recent.find(1)).toBeDefined()
})

test('a flood of leaves is not kept', () => {
  const recent = createRecentTiles()
  add(recent, 0, 600 * 256)
  expect(
    Array.from({ length: 600 }, (_, index) => recent.find(index)).filter((tile) => tile !== undefined).length,
  ).toBe(512)
})

test('the folder has the same files as one that is published from the database', async () => {
  const [own, temporary] = [await createDatabase(), temporaryFolder()]
  const writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, organizationRows('acme')))
  const [folder, bare] = [join(temporary.path, 'folder'), join(temporary.path, 'bare')]
  const masterKey = { kind: 'value', hex: 'a'.repeat(64) } as const
  const settings = { mode: 'full', folder } as const
  const log = createAuditLog({
    ...{ database: own.database, writer, auditLog: settings, masterKey, now: () => 1_000, log: () => {} },
  })
  const grow = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, index) => writer.appendAudit(auditRow(`request ${index}`))))
  await grow(700)
  await log.checkpoint()
  await grow(700)
  const signed = await log.checkpoint()
  await publish(own.database.orm, bare, signed)
  const within = join(folder, signed.epoch)
  const tiles = readdirSync(join(bare, 'tile'), { recursive: true, withFileTypes: true }).filter((each) =>
    each.isFile(),
  )
  expect(tiles.length).toBeGreaterThan(10)
  for (const { parentPath, name } of tiles) {
    const path = join(parentPath, name)
    expect(readFileSync(path).equals(readFileSync(join(within, path.slice(bare.length))))).toBe(true)
  }
  await writer.close()
  await own.close()
  temporary.remove()
})
