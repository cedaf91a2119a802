// Every field of every kind: set and changed over HTTP, by a command and by a document, and read back through all three.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationName } from '../../../src/admin/operations.ts'
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
  commands: {
    make: (walk: Walk, name: string, values: Values) =>
      command(walk.kind, walk.create, '--name', name, ...argumentsFor(walk, values, latchkey.folder)),
    change: async (walk: Walk, name: string, values: Values) => {
      await command(walk.kind, 'update', name, ...argumentsFor(walk, values, latchkey.folder))
      // What is switched has a command of its own.
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
const wayNames = ['HTTP', 'commands', 'documents'] as const

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
  const read = await Promise.all(wayNames.map((way) => ways[way].read(walk, name)))
  for (const [field, { shown, isSet, entry, default: common = null }] of settableIn(walk))
    for (const [index, way] of wayNames.entries()) {
      if (way === 'documents' ? entry === false : shown === undefined) continue
      const found = read[index]?.[field] ?? (way === 'documents' ? common : null)
      const expected = values[field] ?? (way === 'documents' ? common : null)
      expect([name, way, field, sorted(found, isSet)]).toEqual([name, way, field, sorted(expected, isSet)])
    }
}

describe.each(walks.map((walk) => [walk.kind, walk] as const))('%s', (_, walk) => {
  const settable = settableIn(walk)

  test('have two different values of every field that can be set', () => {
    expect(Object.keys(walk.samples).toSorted()).toEqual(settable.map(([name]) => name).toSorted())
    for (const [first, second] of Object.values(walk.samples)) expect(first).not.toEqual(second)
  })

  test.each(wayNames)('are made, changed and emptied by %s, and read through every way', async (way) => {
    const name = `${walk.one}-by-${way}`
    const places = way === 'documents' ? (['entry', 'entry'] as const) : (['create', 'change'] as const)
    const first = valuesFor(walk, places[0], 0)
    await ways[way].make(walk, name, first)
    await expectEverywhere(walk, name, { ...valuesFor(walk, 'entry', 0), ...first })
    const second = valuesFor(walk, places[1], 1)
    await ways[way].change(walk, name, second)
    await expectEverywhere(walk, name, second)
    const removable = settable.filter(([field, { shape }]) => field !== 'condition' && shape?.allows(null))
    const removed = Object.fromEntries(removable.map(([field]) => [field, null]))
    await ways[way].change(walk, name, way === 'documents' ? { ...second, ...removed } : removed)
    await expectEverywhere(walk, name, { ...second, ...removed })
  })
})

test('the plan of what was exported is empty', async () => {
  const document = await run('config.export', {})
  expect(await run('config.plan', { document })).toMatchObject({ changes: [] })
})
