// The schemas of preset bodies in the OpenAPI document judge a body as the service does: good ones, and good ones changed in one place.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { applyPreset } from '../../src/presets/apply.ts'
import { chatBodyProblems } from '../../src/presets/dialects/from-chat.ts'
import { messagesBodyProblems } from '../../src/presets/dialects/from-messages.ts'
import { responsesBodyProblems } from '../../src/presets/dialects/from-responses.ts'
import { configKeys, passingParameters } from '../../src/presets/schema/parameters.ts'
import type { Problem } from '../../src/presets/schema/validation.ts'
import { bodySchema, createSchemaCheck, readOwnDocument } from '../support/openapi.ts'
import { chatBody, config, type Fields } from '../support/preset-bodies.ts'

const document = await readOwnDocument()
const isValid = createSchemaCheck(document)
/** What no schema says, and the description of the operation does. */
const stated = 'must not differ from reasoning.effort'

const input = [{ role: 'user', content: 'Hi' }]
const dialects: [path: string, bodies: fc.Arbitrary<Fields>, problems: (body: Fields) => Problem[]][] = [
  ['chat/completions', chatBody, chatBodyProblems],
  [
    'messages',
    fc.tuple(config, fc.constant({ model: 'm', messages: input })).map(complete('messages')),
    messagesBodyProblems,
  ],
  ['responses', fc.tuple(config, fc.constant({ model: 'm', input })).map(complete('responses')), responsesBodyProblems],
]

function complete(target: 'messages' | 'responses') {
  return ([config, request]: [Fields, Fields]) =>
    JSON.parse(JSON.stringify(applyPreset(target, { config, systemPrompt: 'Be brief' }, request))) as Fields
}

const odd = fc.constantFrom<unknown[]>(
  ...[null, true, 0, -1, 1.5, 2 ** 53, '', 'x', 'x'.repeat(300), '😀'.repeat(256), 'a@preset/b', 'auto', 'function'],
  ...[[], [null], Array(17).fill('x'), {}, { type: 'x' }, { type: null }, { role: 'user' }, { x: null }],
)

/** Another value somewhere in a body; the places are counted through it in order. */
function changedAt(body: unknown, place: { left: number }, value: unknown): unknown {
  if (place.left === 0) {
    place.left = -1
    return value
  }
  place.left -= 1
  if (typeof body !== 'object' || body === null) return body
  if (Array.isArray(body)) return body.map((item) => (place.left < 0 ? item : changedAt(item, place, value)))
  return Object.fromEntries(
    Object.entries(body).map(([name, member]) => [name, place.left < 0 ? member : changedAt(member, place, value)]),
  )
}

for (const [path, bodies, problems] of dialects) {
  describe(`a body for ${path}`, () => {
    const schema = bodySchema(document, 'POST', `/presets/{slug}/${path}`)
    const agree = (body: Fields) => {
      const found = problems(body).filter(({ rule }) => rule !== stated)
      const isEmpty = Object.keys(body).length === 0
      expect({ body, found, isValid: isValid(schema, body) }).toEqual({
        body,
        found,
        isValid: found.length === 0 && !isEmpty,
      })
    }

    test('that is taken fits the document', () => fc.assert(fc.property(bodies, agree), { numRuns: 100 }))

    test('that is changed in one place fits it exactly when it is taken', () => {
      const place = fc.nat({ max: 60 })
      fc.assert(
        fc.property(bodies, place, odd, (body, left, value) => {
          const changed = changedAt(body, { left: left + 1 }, value) as Fields
          agree(changed)
        }),
        { numRuns: 400 },
      )
    })
  })
}

test('the document names every parameter of the table, and no other', () => {
  const { properties = {} } = bodySchema(document, 'POST', '/presets/{slug}/chat/completions')
  expect(Object.keys(properties).toSorted()).toEqual([...configKeys, ...Object.keys(passingParameters)].toSorted())
  expect(Object.keys(properties).length).toBeGreaterThanOrEqual(40)
})
