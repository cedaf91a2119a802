// What the database itself says of presets, whatever the program does: versions stay as they are, and a preset designates one of these.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Preset, PresetVersion } from '../../../db/schema/schema.ts'
import { insertPresetVersions, updatePreset } from '../../../db/tables/presets.ts'
import type { Statement } from '../../../db/write/rows.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { rowsInFile } from '../../support/database-file.ts'
import { onFile } from '../../support/file-only.ts'
import { createDatabase, insertOrganizationRows, organizationRows, type TestDatabase } from '../../support/rows.ts'

const acme = organizationRows('acme')
const other = organizationRows('other')

function versionOf(preset: string, version: number): PresetVersion {
  const content = { config: '{"model":"m"}', systemPrompt: 'Be brief' }
  return { id: `${preset}-${version}`, presetId: preset, version, ...content, creatorId: acme.user.id, createdAt: 1 }
}

const draft: Preset = {
  id: 'preset',
  organizationId: acme.organization.id,
  workspaceId: acme.workspace.id,
  slug: 'slug',
  name: 'slug',
  description: null,
  status: 'active',
  statusUpdatedAt: null,
  creatorId: acme.user.id,
  designatedVersion: 2,
  latestVersion: 2,
  createdAt: 1,
  updatedAt: 1,
  managedBy: null,
}

let own: TestDatabase
let writer: Writer
/** The preset `preset` with two versions, which no test changes. */
beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write([...insertOrganizationRows(own.database, acme), ...insertOrganizationRows(own.database, other)])
  await writer.write(insertPresetVersions([draft], none, [versionOf('preset', 1), versionOf('preset', 2)]))
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

const none = { at: 1, versionsMore: new Map() }
const sql = (text: string): Statement => ({ toSQL: () => ({ sql: text, params: [] }) })
const everything = () =>
  rowsInFile(
    own.path,
    'select * from presets full join preset_versions on presets.id = preset_id order by preset_versions.id',
  )

async function expectRefused(statements: Statement[], message: string): Promise<void> {
  const before = everything()
  await expect(writer.write(statements)).rejects.toThrow(message)
  expect(everything()).toEqual(before)
}

test.each<[string, string, string]>([
  ['a deletion', 'delete from preset_versions', 'versions of presets are never deleted'],
  ['a change', "update preset_versions set config = '{}'", 'versions of presets are never changed'],
  ['a change to the same', 'update preset_versions set config = config', 'versions of presets are never changed'],
  [
    'an upsert',
    `insert into preset_versions select * from preset_versions where id = 'preset-1'
      on conflict (preset_id, version) do update set config = '{}'`,
    'versions of presets are never changed',
  ],
  ['a deletion of the preset', 'delete from presets', 'FOREIGN KEY'],
])('%s does away with no version', async (_, text, message) => {
  await expectRefused([sql(text)], message)
})

onFile('recursive triggers').test.each([
  ['the same id', "select * from preset_versions where id = 'preset-1'"],
  [
    'another id',
    "select 'else', preset_id, version, '{}', null, creator_id, 2 from preset_versions where id = 'preset-1'",
  ],
])('a replacement under %s does away with no version', async (_, select) => {
  await expectRefused(
    [sql(`insert or replace into preset_versions ${select}`)],
    'versions of presets are never deleted',
  )
})

test('a number is given once, from 1', async () => {
  const insert = (version: PresetVersion) =>
    insertPresetVersions([], { at: 2, versionsMore: new Map([['preset', 1]]) }, [version])
  await expectRefused(insert({ ...versionOf('preset', 2), id: 'again' }), 'UNIQUE')
  await expectRefused(insert(versionOf('preset', 0)), 'CHECK')
  await expectRefused(insert(versionOf('nobody', 1)), 'FOREIGN KEY')
})

test('a slug is one preset of its workspace, archived or not, and free in others', async () => {
  await writer.write([updatePreset(own.database.orm, 'preset', { status: 'archived' })])
  const single = { designatedVersion: 1, latestVersion: 1 }
  await expectRefused(
    insertPresetVersions([{ ...draft, ...single, id: 'third' }], none, [versionOf('third', 1)]),
    'UNIQUE',
  )
  await writer.write([updatePreset(own.database.orm, 'preset', { status: 'active' })])
  const { organization, workspace, user } = other
  const theirs = { organizationId: organization.id, workspaceId: workspace.id, creatorId: user.id }
  await writer.write(
    insertPresetVersions([{ ...draft, ...theirs, ...single, id: 'theirs' }], none, [versionOf('theirs', 1)]),
  )
})

test('a preset has no workspace and no creator of another organization, and no status that there is not', async () => {
  const preset = { ...draft, id: 'wrong', slug: 'wrong', designatedVersion: 1, latestVersion: 1 }
  const expectWrong = (change: Partial<Preset>, message: string) =>
    expectRefused(insertPresetVersions([{ ...preset, ...change }], none, [versionOf('wrong', 1)]), message)
  await expectWrong({ workspaceId: other.workspace.id }, 'FOREIGN KEY')
  await expectWrong({ organizationId: other.organization.id }, 'FOREIGN KEY')
  await expectWrong({ creatorId: other.user.id }, 'FOREIGN KEY')
  await expectWrong({ status: 'gone' as 'archived' }, 'CHECK')
})

test('a preset designates none but its versions, and an update that is refused leaves all as it was', async () => {
  const { orm } = own.database
  for (const designatedVersion of [0, 3])
    await expectRefused([updatePreset(orm, 'preset', { designatedVersion })], 'CHECK')
  await writer.write([updatePreset(orm, 'preset', { designatedVersion: 1 })])
  await writer.write([updatePreset(orm, 'preset', { designatedVersion: 2 })])
})

test('new versions of a preset become its latest and its designated one, whichever that was before', async () => {
  const preset = { ...draft, id: 'advanced', slug: 'advanced', designatedVersion: 1, latestVersion: 1 }
  const beside = { ...preset, id: 'beside', slug: 'beside' }
  await writer.write(insertPresetVersions([preset, beside], none, [versionOf('advanced', 1), versionOf('beside', 1)]))
  const advance = (at: number, more: number, first: number) =>
    writer.write(
      insertPresetVersions(
        [],
        { at, versionsMore: new Map([['advanced', more]]) },
        Array.from({ length: more }, (_, index) => versionOf('advanced', first + index)),
      ),
    )
  const numbersOf = (id: string) =>
    rowsInFile(own.path, `select designated_version, latest_version, updated_at from presets where id = '${id}'`)
  await advance(5, 1, 2)
  expect(numbersOf('advanced')).toEqual([{ designated_version: 2, latest_version: 2, updated_at: 5 }])
  await writer.write([updatePreset(own.database.orm, 'advanced', { designatedVersion: 1 })])
  await advance(6, 3, 3)
  expect(numbersOf('advanced')).toEqual([{ designated_version: 5, latest_version: 5, updated_at: 6 }])
  expect(numbersOf('beside')).toEqual([{ designated_version: 1, latest_version: 1, updated_at: 1 }])
})
