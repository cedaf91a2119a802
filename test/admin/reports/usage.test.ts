// Whose usage a report holds, and from when to when: each report alone, whatever it is summed up by.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { usageGroupings } from '../../../db/schema/usage-groupings.ts'
import { answer, type Inference, question, startInference } from '../../support/inference.ts'
import type { Row } from '../../support/latchkey.ts'

type Key = Row & { key: string }
type Report = { data: Row[] }

let latchkey: Inference
let mine: Key
let theirs: Key
/** When `mine` asked for the last time. */
let at: number
beforeAll(async () => {
  latchkey = await startInference()
  latchkey.upstream.answer.current = () => Response.json(answer)
  await latchkey.admin('organizations.create', { name: 'other' })
  mine = await latchkey.admin<Key>('keys.create', { name: 'mine' })
  theirs = await latchkey.admin<Key>('keys.create', { name: 'theirs', organization: 'other' })
  for (const { key } of [mine, mine, theirs])
    await (await latchkey.complete(question, { authorization: `Bearer ${key}` })).text()
  const { data } = await latchkey.admin<Report>('usage.requests', { key: 'mine', limit: 1 })
  at = Date.parse(String(data[0]?.at))
})
afterAll(() => latchkey.stop())

const reportOf = async (name: 'usage.sum' | 'usage.requests', input: Record<string, unknown>) =>
  (await latchkey.admin<Report>(name, input)).data
const requestsIn = (rows: Row[]) => rows.reduce((sum, { requests }) => sum + Number(requests), 0)
const iso = (time: number) => new Date(time).toISOString()

describe.each([...usageGroupings])('summed up by %s', (by) => {
  test('usage is of one organization, of one key, or of all', async () => {
    expect(requestsIn(await reportOf('usage.sum', { by, organization: 'default' }))).toBe(2)
    expect(requestsIn(await reportOf('usage.sum', { by, organization: 'other' }))).toBe(1)
    expect(requestsIn(await reportOf('usage.sum', { by }))).toBe(3)
    expect(requestsIn(await reportOf('usage.sum', { by, organization: 'other', key: theirs.id }))).toBe(1)
  })

  test('usage begins with `since` and ends before `until`', async () => {
    const of = async (range: object) => requestsIn(await reportOf('usage.sum', { by, key: 'mine', ...range }))
    const [first] = (await reportOf('usage.requests', { key: 'mine' })).slice(-1)
    const begun = Date.parse(String(first?.at))
    const last = at === begun ? 2 : 1
    expect(await of({ since: iso(begun) })).toBe(2)
    expect(await of({ since: iso(at) })).toBe(last)
    expect(await of({ since: iso(at + 1) })).toBe(0)
    expect(await of({ until: iso(begun) })).toBe(0)
    expect(await of({ until: iso(at) })).toBe(2 - last)
    expect(await of({ until: iso(at + 1) })).toBe(2)
  })
})

test('single requests are of one organization or of all, and within the same times', async () => {
  const keysOf = async (input: object) =>
    (await reportOf('usage.requests', input as Record<string, unknown>)).map(({ key_name }) => key_name)
  expect(await keysOf({})).toEqual(['theirs', 'mine', 'mine'])
  expect(await keysOf({ organization: 'default' })).toEqual(['mine', 'mine'])
  expect(await keysOf({ organization: 'other' })).toEqual(['theirs'])
  expect(await keysOf({ key: 'mine', since: iso(at + 1) })).toEqual([])
  expect(await keysOf({ key: 'mine', until: iso(at + 1) })).toEqual(['mine', 'mine'])
  expect(await keysOf({ key: 'mine', since: iso(at), until: iso(at) })).toEqual([])
})
