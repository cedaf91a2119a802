// Presets as documents: as deep as their bodies, as many as a workspace holds, and without holding the loop.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { testDocuments } from '../../../src/admin/config/document-test.ts'
import { inputEntriesMax, presetBodyDepthMax, presetsMax } from '../../../src/limits.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

let latchkey: TestServer
beforeAll(async () => {
  latchkey = await startTestServer()
})
afterAll(() => latchkey.stop())

type Entry = { slug: string; config: object }
const exported = () => latchkey.admin<{ presets: Entry[] }>('config.export', { only: ['presets'] })
const apply = (document: object) => latchkey.admin('config.apply', { document })
const documentOf = <Preset extends object>(...presets: Preset[]) => ({ latchkey: 1, presets })

/** A tool whose schema makes the settings so deep: the settings, `tools`, the tool, `function` and `parameters` are five levels. */
function withDepth(depth: number) {
  const parameters = Array.from({ length: depth - 5 }).reduce<object>((inner) => ({ properties: inner }), {})
  return { model: 'm', tools: [{ type: 'function', function: { name: 'f', parameters } }] }
}

test('a preset as deep as a body may be is in an export, and its plan is empty', async () => {
  await apply(documentOf({ slug: 'deep', config: withDepth(presetBodyDepthMax) }))
  const document = await exported()
  expect(document.presets).toEqual([{ slug: 'deep', config: withDepth(presetBodyDepthMax) }])
  expect(await latchkey.admin('config.plan', { documents: [{ ...document, owner: 'o' }] })).toMatchObject({
    changes: [{ name: 'deep', action: 'adopt' }],
  })
  expect(await latchkey.admin('config.plan', { document })).toMatchObject({ changes: [] })
  expect(await testDocuments([document], Date.now())).toMatchObject({ blocked: [] })
  await expect(apply(documentOf({ slug: 'deeper', config: withDepth(presetBodyDepthMax + 1) }))).rejects.toThrow(
    `must be nested at most ${presetBodyDepthMax} levels deep`,
  )
})

test('the order within a setting stays', async () => {
  const config = { model: 'm', stop: ['b', 'a'], logit_bias: { b: 1, a: 2 } }
  await apply(documentOf({ slug: 'ordered', config }))
  const { presets } = await exported()
  expect(JSON.stringify(presets.find(({ slug }) => slug === 'ordered')?.config)).toBe(JSON.stringify(config))
})

test('a document has as many presets as a workspace, and of the others as many as any input', async () => {
  const presets = Array.from({ length: presetsMax + 1 }, (_, index) => ({ slug: `p${index}`, config: {} }))
  const judge = (document: object) => testDocuments([{ latchkey: 1, ...document }], Date.now())
  expect(await judge({ presets: presets.slice(1) })).toMatchObject({ blocked: [] })
  await expect(judge({ presets })).rejects.toThrow(`at most ${presetsMax} entries`)
  const keys = presets.slice(0, inputEntriesMax + 1).map(({ slug }) => ({ name: slug }))
  expect(await judge({ keys: keys.slice(1) })).toMatchObject({ blocked: [] })
  await expect(judge({ keys })).rejects.toThrow(`keys must be at most length ${inputEntriesMax}`)
})

test('an export lets the event loop turn while it reads versions that are not in memory', async () => {
  const presets = Array.from({ length: 300 }, (_, index) => ({
    slug: `many-${index}`,
    config: { stop: 'x'.repeat(2_000) },
  }))
  await apply(documentOf(...presets))
  let turns = 0
  const turning = setInterval(() => turns++, 0)
  await exported()
  clearInterval(turning)
  expect(turns).toBeGreaterThan(5)
})

test('more presets than one statement holds are made in one change, and get their second versions in one', async () => {
  const documentWith = (stop: string) =>
    documentOf(
      ...Array.from({ length: 600 }, (_, index) => ({ slug: `large-${index}`, config: { stop, seed: index } })),
    )
  for (const stop of ['first', 'second']) {
    await apply(documentWith(stop))
    const { presets } = await exported()
    const saved = presets.filter(({ slug }) => slug.startsWith('large-'))
    expect(new Map(saved.map(({ slug, config }) => [slug, config]))).toEqual(
      new Map(documentWith(stop).presets.map(({ slug, config }) => [slug, config])),
    )
  }
  const versions = await latchkey.admin<{ total_count: number }>('presets.versions', { preset: 'large-599' })
  expect(versions.total_count).toBe(2)
})
