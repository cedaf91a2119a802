// Every field of every kind: set and changed over HTTP, by a command and by a document, and read back through all three.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Field } from '../../../src/admin/kinds/fields.ts'
import { kinds, recordOf } from '../../../src/admin/kinds/kinds.ts'
import type { OperationName } from '../../../src/admin/operations.ts'
import { createPacker } from '../../support/bundles.ts'
import { createCommandRunner } from '../../support/command-runner.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { argumentsFor, settableIn, valuesFor, type Walk, walks } from './samples.ts'

type Values = Record<string, unknown>
let latchkey: PastedIssuer
let credential: string
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  credential = (await latchkey.admin<{ key: string }>('keys.create', { name: 'root', kind: 'management' })).key
  await latchkey.admin('keys.create', { name: 'spare' })
  await latchkey.admin('workspaces.create', { name: 'staging' })
  for (const name of ['border', 'gate']) {
    const { key } = await createPacker('https://b.example.com', () => latchkey.clock.now)
    await latchkey.admin('bundle_signers.add', { name, key: key.publicJwk })
  }
  const { jwks } = latchkey.issuer
  await latchkey.admin('issuers.add', { name: 'other', issuer_url: 'https://b.example.com', jwks, shared: false })
})
afterAll(() => latchkey.stop())

async function send(method: string, path: string, body?: Values): Promise<Values> {
  const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
  const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
  const response = await fetch(`${latchkey.server.baseUrl}${path}`, init)
  const { data, error } = (await response.json()) as { data: Values; error?: object }
  expect({ method, body, error }).toEqual({ method, body, error: undefined })
  return data
}

const run = (name: string, input: Values) => latchkey.admin<Values>(name as OperationName, input)
const command = (...args: string[]) => createCommandRunner(latchkey.folder).json(...args)

const ways = {
  HTTP: {
    make: ({ path = '' }: Walk, name: string, values: Values) => send('POST', path, { name, ...values }),
    change: ({ path }: Walk, name: string, values: Values) => send('PATCH', `${path}/${name}`, values),
    read: ({ path }: Walk, name: string) => send('GET', `${path}/${name}`),
  },
  operations: {
    make: ({ kind, create }: Walk, name: string, values: Values) => run(`${kind}.${create}`, { name, ...values }),
    change: ({ kind }: Walk, name: string, values: Values) =>
      run(`${kind}.update`, { [recordOf(kind).one]: name, ...values }),
    read: ({ kind }: Walk, name: string) => run(`${kind}.show`, { [recordOf(kind).one]: name }),
  },
  commands: {
    make: (walk: Walk, name: string, values: Values) =>
      command(walk.kind, walk.create, '--name', name, ...argumentsFor(walk, values)),
    change: async (walk: Walk, name: string, values: Values) => {
      await command(walk.kind, 'update', name, ...argumentsFor(walk, values))
      // What is switched has its own command.
      if (values.enabled === false || values.disabled === true) await command(walk.kind, 'disable', name)
    },
    read: ({ kind }: Walk, name: string) => command(kind, 'show', name),
  },
  documents: {
    make: (walk: Walk, name: string, values: Values) => apply(walk, name, values),
    change: (walk: Walk, name: string, values: Values) => apply(walk, name, values),
    read: (walk: Walk, name: string) => entryIn(walk, name),
  },
}
type Way = keyof typeof ways
/** Kinds that HTTP does not change are changed by the operations that it would call. */
const waysOf = ({ path }: Walk): Way[] => [path === undefined ? 'operations' : 'HTTP', 'commands', 'documents']

async function apply({ kind }: Walk, name: string, values: Values): Promise<Values> {
  const set = Object.entries(values).filter(([, value]) => value !== null)
  return run('config.apply', { document: { latchkey: 1, [kind]: [{ name, ...Object.fromEntries(set) }] } })
}

async function entryIn({ kind }: Walk, name: string): Promise<Values> {
  const exported = await run('config.export', { only: [kind] })
  const entries = exported[kind] as Values[]
  return entries.find((entry) => entry.name === name) ?? {}
}

const sorted = (value: unknown, isSet?: boolean) => (isSet === true && Array.isArray(value) ? value.toSorted() : value)

/** What every way of reading must find. A document has no defaults, and its sets are sorted. */
async function expectEverywhere(walk: Walk, name: string, values: Values): Promise<void> {
  for (const way of waysOf(walk)) {
    const found = await ways[way].read(walk, name)
    const isDocument = way === 'documents'
    for (const [field, { shown, isSet, entry, default: common = null }] of settableIn(walk)) {
      const isMissing = isDocument ? entry === false || walk.writeOnly?.includes(field) : shown === undefined
      if (isMissing === true || !(field in values)) continue
      const meant = isDocument || values[field] === null ? common : null
      expect([name, way, field, sorted(found[field] ?? meant, isSet)]).toEqual([
        ...[name, way, field, sorted(values[field] ?? meant, isSet)],
      ])
    }
  }
}

/** A policy keeps its condition, since it needs one rule, and an issuer its signer, without whom a new one has no keys. */
const kept = ['condition', 'bundle_signer']

/** What null removes, where the way can say so. */
const isRemovable = (way: Way, [name, { shape, flag, change }]: [string, Field]) =>
  !kept.includes(name) &&
  change !== false &&
  shape?.allows(null) === true &&
  (way !== 'commands' || flag?.no !== undefined || name.startsWith('credential'))

for (const walk of walks)
  describe(`${walk.kind} ${walk.about ?? ''}`, () => {
    test.each(waysOf(walk))('are made, changed and emptied by %s, and read through every way', async (way) => {
      const name = `${recordOf(walk.kind).one}-${walks.indexOf(walk)}-by-${way.toLowerCase()}`
      const isDocument = way === 'documents'
      const first = valuesFor(walk, isDocument ? 'entry' : 'create', 0, name)
      await ways[way].make(walk, name, first)
      await expectEverywhere(walk, name, first)
      const second = valuesFor(walk, isDocument ? 'entry' : 'change', 1, name)
      await ways[way].change(walk, name, second)
      await expectEverywhere(walk, name, { ...first, ...second })
      const removed = settableIn(walk).filter((entry) => isRemovable(way, entry))
      const without = { ...first, ...second, ...Object.fromEntries(removed.map(([field]) => [field, null])) }
      const sent = Object.fromEntries(removed.map(([field]) => [field, null]))
      if (removed.length > 0) await ways[way].change(walk, name, isDocument ? without : sent)
      await expectEverywhere(walk, name, without)
    })
  })

test('every field that can be set is among those', () => {
  // They are set by other tests: a name by each of these, discovery in place of a source, prices and presets below,
  // the role of a management key in test/keys/roles.test.ts, the secret of the page in test/admin/sign-in.test.ts.
  const elsewhere = ['name', 'discovery', 'role', 'page_secret']
  for (const kind of kinds.filter((each) => !['prices', 'presets'].includes(each))) {
    const walked = new Set(walks.flatMap((walk) => (walk.kind === kind ? Object.keys(walk.samples) : [])))
    const settable = Object.entries(recordOf(kind).fields).filter(([, { shape }]) => shape !== undefined)
    const missing = settable.map(([name]) => name).filter((name) => !walked.has(name) && !elsewhere.includes(name))
    expect([kind, missing]).toEqual([kind, []])
  }
})

test('prices are set by a command, an operation and a document', async () => {
  const values = { prompt: 0.15, completion: 0.6, cached: 0.02 }
  const others = { prompt: 1, completion: 2, cached: 0.5 }
  const flags = (price: Values) => Object.entries(price).flatMap(([name, value]) => [`--${name}`, String(value)])
  for (const price of [values, others]) {
    await run('prices.set', { prices: [{ model: 'a', ...price }] })
    await command('prices', 'set', 'b', ...flags(price))
    await run('config.apply', { document: { latchkey: 1, prices: [{ model: 'c', ...price }] } })
    const { data } = await run('prices.list', {})
    expect(data).toMatchObject(['a', 'b', 'c'].map((model) => ({ model, ...price })))
    const { prices } = await run('config.export', { only: ['prices'] })
    expect(prices).toEqual(['a', 'b', 'c'].map((model) => ({ model, ...price })))
  }
})

test('presets are made by a document, and changed by an operation, a command and a document', async () => {
  const entry = { slug: 'deep', name: 'Deep', description: 'd', config: { model: 'm' }, system_prompt: 'Be brief' }
  const applied = (more: object) => run('config.apply', { document: { latchkey: 1, presets: [{ ...entry, ...more }] } })
  await applied({})
  const readAs = async (expected: object) => {
    expect(await run('presets.show', { preset: 'deep' })).toMatchObject(expected)
    expect(await command('presets', 'show', 'deep')).toMatchObject(expected)
    expect((await run('config.export', { only: ['presets'] })).presets).toMatchObject([expected])
  }
  await readAs({ slug: 'deep', name: 'Deep', description: 'd' })
  await run('presets.update', { preset: 'deep', name: 'Deeper', description: 'e', status: 'disabled' })
  await readAs({ name: 'Deeper', description: 'e', status: 'disabled' })
  await command('presets', 'update', 'deep', '--name', 'Deepest', '--description', 'f')
  await readAs({ name: 'Deepest', description: 'f' })
  await applied({ name: 'Deep again', config: { model: 'n' } })
  await readAs({ name: 'Deep again', description: 'd' })
  await run('presets.update', { preset: 'deep', designated_version: 1 })
  const [exported] = (await run('config.export', { only: ['presets'] })).presets as Values[]
  expect(exported).toMatchObject({ config: { model: 'm' }, system_prompt: 'Be brief' })
})

test('the plan of what was exported is empty', async () => {
  const document = await run('config.export', {})
  expect(await run('config.plan', { document })).toMatchObject({ changes: [] })
})
