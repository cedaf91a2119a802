// When the status of a preset was last changed (reference: Presets): a change to the status that it has already leaves that time. And which
// versions may be designated.
import { afterAll, beforeAll, expect, setSystemTime, test } from 'bun:test'
import { type PresetServer, startPresets } from '../support/presets.ts'

let latchkey: PresetServer
beforeAll(async () => {
  latchkey = await startPresets()
})
afterAll(async () => {
  setSystemTime()
  await latchkey.stop()
})

/** Each moment is one second after the last, so that no two times are the same. */
function tick(): string {
  const now = Date.now() + 1_000
  setSystemTime(now)
  return new Date(now).toISOString()
}
const patch = async (slug: string, body: object) => (await latchkey.call('PATCH', `/presets/${slug}`, { body })).data

test('the same status leaves status_updated_at, another one moves it', async () => {
  const slug = await latchkey.savePreset({ model: 'm' })
  expect(await patch(slug, { status: 'active' })).toMatchObject({ status: 'active', status_updated_at: null })
  const disabledAt = tick()
  expect(await patch(slug, { status: 'disabled' })).toMatchObject({ status_updated_at: disabledAt })
  const later = tick()
  const again = await patch(slug, { status: 'disabled', name: 'Other' })
  expect(again).toMatchObject({ status: 'disabled', status_updated_at: disabledAt, updated_at: later })
  const activeAt = tick()
  expect(await patch(slug, { status: 'active' })).toMatchObject({ status_updated_at: activeAt })
  tick()
  expect(await patch(slug, { status: 'active' })).toMatchObject({ status_updated_at: activeAt })
})

test('archiving and restoring again leave it, and so does a new version', async () => {
  const slug = await latchkey.savePreset({ model: 'm' })
  const change = async (method: string, path: string) => (await latchkey.call(method, `/presets/${path}`)).data
  tick()
  expect(await change('POST', `${slug}/restore`)).toMatchObject({ status: 'active', status_updated_at: null })
  const archivedAt = tick()
  expect(await change('DELETE', slug)).toMatchObject({ status: 'archived', status_updated_at: archivedAt })
  tick()
  expect(await change('DELETE', slug)).toMatchObject({ status_updated_at: archivedAt, updated_at: archivedAt })
  const restoredAt = tick()
  expect(await change('POST', `${slug}/restore`)).toMatchObject({ status: 'active', status_updated_at: restoredAt })
  const versionAt = tick()
  await latchkey.savePreset({ model: 'n' }, slug)
  const { data } = await latchkey.call('GET', `/presets/${slug}`)
  expect(data).toMatchObject({
    status_updated_at: restoredAt,
    updated_at: versionAt,
    designated_version: { version: 2 },
  })
})

test('a document that names the same status leaves it', async () => {
  const slug = await latchkey.savePreset({ model: 'm' })
  const entry = { slug, config: { model: 'm' } }
  const apply = (preset: object) => latchkey.admin('config.apply', { document: { latchkey: 1, presets: [preset] } })
  const disabledAt = tick()
  await patch(slug, { status: 'disabled' })
  tick()
  await apply({ ...entry, status: 'disabled', name: 'Imported' })
  const { data } = await latchkey.call('GET', `/presets/${slug}`)
  expect(data).toMatchObject({ name: 'Imported', status: 'disabled', status_updated_at: disabledAt })
  const activeAt = tick()
  await apply({ ...entry, status: 'active' })
  expect((await latchkey.call('GET', `/presets/${slug}`)).data).toMatchObject({ status_updated_at: activeAt })
})

test('every version may be designated, the latest as well, and none beyond it', async () => {
  const slug = await latchkey.savePreset({ model: 'one' })
  await latchkey.savePreset({ model: 'two' }, slug)
  for (const version of [1, 2, 2, 1])
    expect(await patch(slug, { designated_version: version })).toMatchObject({ designated_version: { version } })
  for (const designated_version of [0, 3, -1, 1.5])
    expect((await latchkey.call('PATCH', `/presets/${slug}`, { body: { designated_version } })).status).toBe(400)
})
