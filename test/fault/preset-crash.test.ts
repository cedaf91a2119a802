// Acknowledged preset versions survive a crash unchanged. The server is killed again and again during posts, designations
// and archivings; each time, the file on disk and the restarted server must match every request and response so far.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createChance, killsOr } from '../support/chance.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { type Installation, install, type Served } from '../support/installation.ts'
import type { Row } from '../support/latchkey.ts'
import { bodyOf, type Preset, type Version } from '../support/preset-client.ts'

const chance = createChance('preset-crash')

const rounds = killsOr(4)
const slugs = ['a', 'b', 'c', 'd']
const clientsPerSlug = 8

/** The state of a preset. `asked` differs from `known` during a change, which may or may not be in effect. */
type Described = { name: string; designated: number; status: string }
type Known = {
  slug: string
  /** As acknowledged, or as found after a restart. From then on it counts as known. */
  versions: Map<number, Version>
  /** Each post has a unique body. */
  posted: Set<string>
  known: Described
  asked: Described
}

let installation: Installation
let served: Served
let key: string
let answers = 0
let posts = 0
beforeAll(async () => {
  installation = await install()
  served = await installation.serve()
  key = (await served.ask<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' })).key
})
afterAll(async () => {
  await served.serving.stop()
  await installation.remove()
})

async function call(method: string, path: string, body?: object): Promise<{ status: number; data: Preset }> {
  const response = await fetch(`${served.baseUrl}/presets/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const { data } = (await response.json()) as { data: Preset }
  return { status: response.status, data }
}

async function post({ slug, versions, posted }: Known): Promise<void> {
  const model = crypto.randomUUID()
  posted.add(model)
  const { status, data } = await call('POST', `${slug}/chat/completions`, bodyOf(model))
  // An archived preset rejects the post, which creates nothing.
  if (status === 409) return void posted.delete(model)
  expect({ status, slug: data.slug }).toEqual({ status: 200, slug })
  const { designated_version: version } = data
  expect(versions.has(version.version)).toBe(false)
  expect(version.config.model).toBe(model)
  versions.set(version.version, version)
  posts += 1
}

/** Makes one change after another, so that the known state is in order. */
async function change(preset: Known): Promise<void> {
  const { slug, versions } = preset
  const ask = async (asked: Partial<Described>, method: string, path: string, body?: object) => {
    preset.asked = { ...preset.known, ...asked }
    const { status } = await call(method, path, body)
    expect(status).toBe(200)
    preset.known = preset.asked
  }
  const name = crypto.randomUUID()
  const designated = 1 + Math.floor(chance() * Math.max(...versions.keys()))
  await ask({ name, designated }, 'PATCH', slug, { name, designated_version: designated })
  if (chance() < 0.7) return
  await ask({ status: 'archived' }, 'DELETE', slug)
  await ask({ status: 'active' }, 'POST', `${slug}/restore`)
}

/**
 * Keeps clients busy for `answersUntilKill` more responses, kills the server, and resolves when all clients have
 * noticed.
 */
async function killAmidWork(presets: Known[], answersUntilKill: number): Promise<void> {
  const { process } = served.serving
  const killAt = answers + answersUntilKill
  let isKilled = false
  const kill = () => {
    isKilled = true
    process.kill('SIGKILL')
  }
  const repeat = async (act: () => Promise<void>) => {
    while (!isKilled) {
      try {
        await act()
      } catch (error) {
        const { code = '' } = error as NodeJS.ErrnoException
        if (!isKilled || !['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(code)) throw error
      }
      // Kills shortly after a response, when the server is busy again.
      if (++answers === killAt) setTimeout(kill, chance() * 4)
    }
  }
  await Promise.all(
    presets.flatMap((preset) => [
      ...Array.from({ length: clientsPerSlug }, () => repeat(() => post(preset))),
      repeat(() => change(preset)),
    ]),
  )
  await process.exited
  expect(process.signalCode).toBe('SIGKILL')
}

/** Reads the database after the kill, before any process opens it again. */
function checkFile(): void {
  const [integrity, foreign, wrong, unrecorded] = readDatabaseFile(
    installation.databasePath,
    'pragma integrity_check',
    'pragma foreign_key_check',
    `select slug from presets join preset_versions on preset_id = presets.id group by presets.id
      having count(*) <> max(version) or max(version) <> latest_version or designated_version > latest_version`,
    `select (select count(*) from preset_versions) - (select count(*) from admin_changes where operation = 'presets.save') as count`,
  )
  expect(integrity).toEqual([{ integrity_check: 'ok' }])
  expect({ foreign, wrong, unrecorded }).toEqual({ foreign: [], wrong: [], unrecorded: [{ count: 0 }] })
}

async function readVersions(slug: string): Promise<Version[]> {
  const versions: Version[] = []
  for (let total = 1; versions.length < total; ) {
    const page = { preset: slug, archived: true, offset: versions.length, limit: 100 }
    const { data, total_count } = await served.ask<{ data: Version[]; total_count: number }>('presets.versions', page)
    versions.push(...data)
    total = total_count
  }
  return versions
}

/** Compares a preset of the restarted server with the known state, and learns the outcome of changes in progress. */
async function checkPreset(preset: Known): Promise<void> {
  const { slug, versions, posted, known, asked } = preset
  const found = await readVersions(slug)
  expect(found.map(({ version }) => version)).toEqual(found.map((_, index) => index + 1))
  expect(found.filter(({ version }) => versions.has(version))).toEqual([...versions.values()].toSorted(byNumber))
  const models = found.map(({ config }) => config.model)
  expect(new Set(models).size).toBe(models.length)
  for (const version of found.filter(({ version }) => !versions.has(version))) {
    const { model } = version.config
    expect(posted.has(model)).toBe(true)
    expect(version).toMatchObject({ config: { model, temperature: 0.5 }, system_prompt: `I am ${model}` })
    versions.set(version.version, version)
  }

  const shown = await served.ask<Preset & { name: string }>('presets.show', { preset: slug, archived: true })
  const { name, status, designated_version: designated } = shown
  expect([known.name, asked.name]).toContain(name)
  expect([known.status, asked.status]).toContain(status)
  // Either the last post or the last designation decides the designated version.
  expect([found.length, known.designated, asked.designated]).toContain(designated.version)
  expect(designated).toEqual(found[designated.version - 1] as Version)
  expect(shown.designated_version_id).toBe(designated.id)
  preset.known = { name, status, designated: designated.version }
  preset.asked = preset.known
}

const byNumber = (one: Version, other: Version) => one.version - other.version

async function createPreset(slug: string): Promise<Known> {
  const known = { name: slug, designated: 1, status: 'active' }
  const preset = { slug, versions: new Map(), posted: new Set<string>(), known, asked: known }
  await post(preset)
  return preset
}

test(`a server killed ${rounds} times amid changes of presets has lost none that it acknowledged`, async () => {
  const presets = await Promise.all(slugs.map(createPreset))
  for (let round = 1; round <= rounds; round++) {
    await killAmidWork(presets, 1 + Math.floor(chance() * 100))
    checkFile()
    served = await installation.serve()
    for (const preset of presets) {
      await checkPreset(preset)
      if (preset.known.status === 'archived') await served.ask('presets.restore', { preset: preset.slug })
      preset.known = { ...preset.known, status: 'active' }
      preset.asked = preset.known
    }
  }
  expect(await served.serving.stop()).toBe(0)
  checkFile()
  served = await installation.serve()
  for (const preset of presets) await checkPreset(preset)
  expect(posts).toBeGreaterThan(20 * rounds)
}, 120_000)
