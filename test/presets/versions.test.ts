// Versions of presets as they are made and read: posts that wait share a commit, each fails for itself, and what is cached is
// bounded and true.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { Actor } from '../../db/tables/admin-changes.ts'
import { updateApiKey } from '../../db/tables/api-keys.ts'
import { changesPerCommitMax } from '../../db/write/change-queue.ts'
import { createWriter } from '../../db/write/write.ts'
import { commit, createCommitVersion } from '../../src/admin/operation/commit.ts'
import { compileKey } from '../../src/keys/api-key.ts'
import { presetCacheCharactersMax, presetConfigCharactersMax, presetsMax } from '../../src/limits.ts'
import type { Preset } from '../../src/presets/drafts.ts'
import { createPresets, type Draft, type Presets, type SavedVersion } from '../../src/presets/versions.ts'
import { loadRegistry, type Registry } from '../../src/registry/registry.ts'
import { createMutex } from '../../src/scheduling/mutex.ts'
import { busyError, type Watched, watchBatches } from '../support/batches.ts'
import { rowsInFile } from '../support/database-file.ts'
import { type Row, startTestServer } from '../support/latchkey.ts'
import { createDatabase, insertOrganizationRows, organizationRows, type TestDatabase } from '../support/rows.ts'

const acme = organizationRows('acme')
const other = organizationRows('other')
const byKey: Actor = { kind: 'key', keyId: acme.key.id, requestId: 'request' }
let now: number

let own: TestDatabase
let watched: Watched
let writer: ReturnType<typeof createWriter>
let registry: Registry
let mutex: ReturnType<typeof createMutex>
let presets: Presets
/** How often a version was read from the database. */
let reads: number
beforeEach(async () => {
  now = 1_000
  own = await createDatabase()
  watched = watchBatches(own.database)
  writer = createWriter(
    watched.database,
    () => {},
    () => {},
    own.following,
  )
  await writer.write([...insertOrganizationRows(own.database, acme), ...insertOrganizationRows(own.database, other)])
  watched.batches.length = 0
  registry = await loadRegistry(own.database.orm)
  mutex = createMutex()
  reads = 0
  const orm = new Proxy(own.database.orm, {
    get: (target, name) => {
      if (name === 'select') reads += 1
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const commitVersion = createCommitVersion({ writer, registry })
  presets = createPresets({ orm, registry, now: () => now, commit: commitVersion })
})
afterEach(async () => {
  await writer.close()
  await own.close()
})

/** A post by a key of acme, unless `change` says otherwise. */
function save(slug: string, change: Partial<Draft> & { config?: object } = {}): Promise<SavedVersion> {
  const { config = { model: 'm' }, ...others } = change
  const draft: Draft = {
    organizationId: acme.organization.id,
    workspaceId: acme.workspace.id,
    creatorId: acme.user.id,
    slug,
    actor: byKey,
    operation: 'presets.save',
    content: { config: { ...config }, systemPrompt: null },
    ...others,
  }
  return mutex.runShared(() => presets.save(draft))
}

const numberOf = ({ version }: SavedVersion) => version.version
const versionsInFile = () =>
  rowsInFile(
    own.path,
    'select slug, version, config from preset_versions join presets on presets.id = preset_id order by slug, version',
  ).map(({ slug, version, config }) => `${slug}@${version} ${config}`)
const presetsInFile = () => rowsInFile(own.path, 'select slug, designated_version as at from presets order by slug')
const countOf = (table: string) => rowsInFile(own.path, `select count(*) as count from ${table}`)[0]?.count

async function disableKey(): Promise<void> {
  const { orm } = own.database
  const changing = {
    writer,
    orm,
    registry,
    now: () => now,
    actor: { kind: 'local' as const },
    operation: 'keys.disable',
  }
  await commit(changing, [updateApiKey(orm, acme.key.id, { disabled: true })], [{ kind: 'key', id: acme.key.id }])
}

describe('posts that wait', () => {
  test('share one commit, numbered in the order in which they came', async () => {
    const saved = await Promise.all(
      ['a', 'b', 'a', 'a', 'b'].map((slug, index) => save(slug, { config: { seed: index } })),
    )
    expect(saved.map(numberOf)).toEqual([1, 1, 2, 3, 2])
    expect(watched.batches).toHaveLength(1)
    expect(versionsInFile()).toEqual([
      'a@1 {"seed":0}',
      'a@2 {"seed":2}',
      'a@3 {"seed":3}',
      'b@1 {"seed":1}',
      'b@2 {"seed":4}',
    ])
    expect(presetsInFile()).toEqual([
      { slug: 'a', at: 3 },
      { slug: 'b', at: 2 },
    ])
    // Each response shows the preset after its own change, not after the last.
    expect(saved.map(({ preset }) => preset.designatedVersion)).toEqual(saved.map(numberOf))
    for (const { preset, version } of saved) expect(preset.designatedVersionId).toBe(version.id)
    expect(new Set(saved.map(({ preset }) => preset.id)).size).toBe(2)
  })

  test(`are at most ${changesPerCommitMax} to a commit`, async () => {
    const count = 2 * changesPerCommitMax + 1
    const saved = await Promise.all(Array.from({ length: count }, () => save('a')))
    expect(saved.map(numberOf)).toEqual(Array.from({ length: count }, (_, index) => index + 1))
    expect(watched.batches).toHaveLength(3)
  })

  test('while a commit is under way have the next one, and nothing is in force before its own', async () => {
    const gate = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    watched.before = () => {
      asked.resolve()
      return gate.promise
    }
    const first = save('a')
    await asked.promise
    const later = [save('a'), save('b')]
    expect(registry.presetsOf.get(acme.workspace.id)).toBeUndefined()
    gate.resolve()
    expect((await Promise.all([first, ...later])).map(numberOf)).toEqual([1, 2, 1])
    expect(watched.batches).toHaveLength(2)
  })

  test('each leave their own record, with the preset before and after', async () => {
    await Promise.all([save('a'), save('a', { actor: { kind: 'local' } })])
    const records = rowsInFile(
      own.path,
      'select actor, actor_key_id as key, before, after from admin_changes order by id',
    )
    expect(records.map(({ actor, key }) => [actor, key])).toEqual([
      ['key', acme.key.id],
      ['local', null],
    ])
    expect(records.map(({ before }) => before)).toEqual([null, records[0]?.after ?? null])
    expect(JSON.parse(String(records[1]?.after))).toMatchObject({ slug: 'a', latest_version: 2 })
  })

  test('to the same slug of another workspace are counted apart', async () => {
    const theirs = { organizationId: 'other', workspaceId: other.workspace.id, creatorId: other.user.id }
    const saved = await Promise.all([save('a'), save('a', theirs), save('a'), save('a', theirs)])
    expect(saved.map(numberOf)).toEqual([1, 1, 2, 2])
    expect(watched.batches).toHaveLength(1)
    expect(saved.map(({ preset }) => preset.workspaceId)).toEqual(
      [acme, other, acme, other].map(({ workspace }) => workspace.id),
    )
    expect(new Set(saved.map(({ preset }) => preset.id)).size).toBe(2)
  })
})

describe('a post that fails', () => {
  test('in the database fails alone, and leaves no gap', async () => {
    const outcomes = await Promise.allSettled([
      save('a'),
      save('a', { creatorId: 'nobody', config: { model: 'refused' } }),
      save('b', { creatorId: 'nobody', config: { model: 'refused' } }),
      save('a'),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect(versionsInFile()).toEqual(['a@1 {"model":"m"}', 'a@2 {"model":"m"}'])
    expect([...(registry.presetsOf.get(acme.workspace.id)?.keys() ?? [])]).toEqual(['a'])
    expect(countOf('admin_changes')).toBe(2)
  })

  test('leaves its number to the next one', async () => {
    await save('a')
    let failures = 1
    watched.before = () => {
      if (failures-- > 0) throw new Error('out of order')
    }
    await expect(save('a')).rejects.toThrow('out of order')
    expect(registry.presetsOf.get(acme.workspace.id)?.get('a')?.latestVersion).toBe(1)
    expect(numberOf(await save('a'))).toBe(2)
    expect(countOf('preset_versions')).toBe(2)
  })

  test('because the database is broken fails with all others, and nothing is written again', async () => {
    watched.before = () => {
      throw busyError()
    }
    const outcomes = await Promise.allSettled([save('a'), save('b'), save('a')])
    expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
    watched.before = () => {}
    await expect(save('a')).rejects.toThrow('database is locked')
    expect(countOf('presets')).toBe(0)
    expect(registry.presets.size).toBe(0)
  })

  test.each([
    ['disabled', disableKey],
    ['expired', () => Promise.resolve(++now)],
  ])(
    'because its key was %s after it began is refused and makes nothing; those of others are made',
    async (_, change) => {
      registry.keys.set(acme.key.id, compileKey({ ...acme.key, expiresAt: now + 1 }))
      const changing = mutex.runExclusive<unknown>(change)
      const [refused, made] = await Promise.allSettled([save('a'), save('a', { actor: { kind: 'local' } }), changing])
      expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'unauthorized' } })
      expect(made).toMatchObject({ status: 'fulfilled', value: { version: { version: 1 } } })
      expect(countOf('preset_versions')).toBe(1)
    },
  )

  test('because its key was disabled while it waited is answered 401', async () => {
    const { server, admin, stop } = await startTestServer()
    const { key } = await admin<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' })
    const { context, baseUrl } = server
    const waits = Promise.withResolvers<void>()
    const { runShared } = context
    context.runShared = (work) => {
      const result = runShared(work)
      waits.resolve()
      return result
    }
    const turn = context.runExclusive(() => waits.promise)
    const disabling = admin('keys.disable', { key: 'admin' })
    const response = await fetch(`${baseUrl}/presets/a/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"messages":[{"role":"user","content":"x"}]}',
    })
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toStartWith('Bearer error="invalid_token", resource_metadata="')
    await Promise.all([turn, disabling])
    expect(await admin<object>('presets.list', { archived: true })).toEqual({ data: [], total_count: 0 })
    await stop()
  })

  test('because its preset is archived makes nothing, and one to a disabled preset is made', async () => {
    for (const [slug, status] of [
      ['gone', 'archived'],
      ['off', 'disabled'],
    ] as const) {
      const { preset } = await save(slug)
      registry.presetsOf.get(acme.workspace.id)?.set(slug, { ...preset, status })
    }
    const [refused, made] = await Promise.allSettled([save('gone'), save('off')])
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'conflict' } })
    expect(made).toMatchObject({ status: 'fulfilled', value: { version: { version: 2 } } })
    expect(presetsInFile()).toEqual([
      { slug: 'gone', at: 1 },
      { slug: 'off', at: 2 },
    ])
  })

  test('because there are too many presets makes nothing, though another of its commit was the last that fits', async () => {
    const { preset } = await save('a')
    const full = new Map<string, Preset>([['a', preset]])
    for (let index = 2; index < presetsMax; index++) full.set(String(index), preset)
    registry.presetsOf.set(acme.workspace.id, full)
    const outcomes = await Promise.allSettled([save('b'), save('c'), save('b'), save('a')])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect(outcomes[1]).toMatchObject({ reason: { code: 'invalid', message: expect.stringContaining('at most') } })
    expect(presetsInFile().map(({ slug }) => slug)).toEqual(['a', 'b'])
  })
})

describe('at a bound', () => {
  test('of presets, of several new ones in one commit only those that fit are made, in each workspace', async () => {
    const { preset } = await save('a')
    const theirs = { organizationId: 'other', workspaceId: other.workspace.id, creatorId: other.user.id }
    for (const { workspace } of [acme, other]) {
      const full = new Map<string, Preset>([['a', preset]])
      for (let index = 3; index < presetsMax; index++) full.set(String(index), preset)
      registry.presetsOf.set(workspace.id, full)
    }
    watched.batches.length = 0
    const slugs = ['b', 'c', 'd', 'e']
    const outcomes = await Promise.allSettled(slugs.flatMap((slug) => [save(slug), save(slug, theirs)]))
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([
      ...[true, true, true, true],
      ...[false, false, false, false],
    ])
    expect(watched.batches).toHaveLength(1)
    expect(presetsInFile().map(({ slug }) => slug)).toEqual(['a', 'b', 'b', 'c', 'c'])
  })

  const most = presetConfigCharactersMax
  const rows: [what: string, content: (characters: number) => Draft['content']][] = [
    [
      'settings',
      (characters) => ({ config: { stop: 'x'.repeat(characters - '{"stop":""}'.length) }, systemPrompt: null }),
    ],
    ['system prompt', (characters) => ({ config: {}, systemPrompt: 'x'.repeat(characters - '{}'.length) })],
    [
      'both together',
      (characters) => ({
        config: { stop: 'x'.repeat(1_000 - '{"stop":""}'.length) },
        systemPrompt: 'x'.repeat(characters - 1_000),
      }),
    ],
  ]
  for (const [what, content] of rows)
    test(`of 262,144 characters ${what} are kept, and one more is refused`, async () => {
      expect(most).toBe(262_144)
      expect(numberOf(await save('a', { content: content(most) }))).toBe(1)
      expect(() => save('a', { content: content(most + 1) })).toThrow('have 262145 characters')
      expect(countOf('preset_versions')).toBe(1)
    })
})

describe('what is cached', () => {
  /** The largest content there may be, so that few fill what is kept. */
  const filling: [string, (text: string) => Draft['content']][] = [
    ['settings', (text) => ({ config: { stop: text }, systemPrompt: null })],
    ['a system prompt', (text) => ({ config: {}, systemPrompt: text })],
  ]
  test.each(filling)(
    'is bounded, with %s as the most of it; what was let go is read again as it was',
    async (_, fill) => {
      const characters = presetConfigCharactersMax - 100
      const count = Math.ceil(presetCacheCharactersMax / characters) + 10
      const saved: SavedVersion[] = []
      for (let index = 0; index < count; index++)
        saved.push(await save('a', { content: fill(String(index).padEnd(characters, 'x')) }))
      const preset = registry.presetsOf.get(acme.workspace.id)?.get('a') as Preset

      // Equal to what was answered, compared as text: a difference in 256 KB helps no reader.
      for (let number = 1; number <= count; number++) {
        const read = await presets.versionOf(preset, number)
        expect(JSON.stringify(read) === JSON.stringify(saved[number - 1]?.version)).toBe(true)
      }
      expect(reads).toBe(count)
      const last = await presets.versionOf(preset)
      expect((await presets.versionOf(preset, count)) === last).toBe(true)
      await presets.versionOf(preset, count - 50)
      expect(reads).toBe(count)
      const first = await presets.versionOf(preset, 1)
      expect(reads).toBe(count + 1)
      expect((await presets.versionOf(preset, 1)) === first).toBe(true)
      expect(reads).toBe(count + 1)
    },
  )

  test('has no version that there is not', async () => {
    const { preset } = await save('a')
    expect(await presets.versionOf(preset, 2)).toBeUndefined()
    expect(reads).toBe(0)
  })

  test('and in force is what a restart finds', async () => {
    await Promise.all([save('a'), save('b'), save('a')])
    await Promise.all([save('b'), save('c')])
    const { presets: known, presetsOf } = await loadRegistry(own.database.orm)
    expect(known).toEqual(registry.presets)
    expect(presetsOf).toEqual(registry.presetsOf)
    expect(known.size).toBe(3)
  })
})
