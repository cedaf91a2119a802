// Lists by command: filters and limits, and the same rows whether they come in one go or page by page.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { joinPages } from '../../scripts/shared/list-pages.ts'
import { Fault, pageStartGone } from '../../src/fault.ts'
import { createCommandRunner } from '../support/command-runner.ts'
import type { Row } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { isServerKind } from '../support/server-kind.ts'

let latchkey: PastedIssuer
let commands: ReturnType<typeof createCommandRunner>
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  commands = createCommandRunner(latchkey.folder)
  const names = Array.from({ length: 12 }, (_, index) => `${index % 2 === 0 ? 'Even' : 'odd'}-${index}`)
  const policies = names.map((name) => ({ name, issuer: 'idp', key: name, audience: 'a', subject: name }))
  const document = { latchkey: 1, keys: names.map((name) => ({ name })), policies }
  await latchkey.admin('config.apply', { document })
})
afterAll(() => latchkey.stop())

type List = { data: Row[]; next?: string }
type Listing = 'keys.list' | 'policies.list' | 'issuers.list'
const listings: Listing[] = ['keys.list', 'policies.list', 'issuers.list']
const list = (operation: Listing, input: object = {}) => latchkey.admin<List>(operation, { ...input })
const run = (operation: Listing, ...args: string[]) => commands.run(...operation.split('.'), ...args)

/** On a server database, the command is another process, which has the rows of one commit in another order. */
const inOrder = ({ data, ...rest }: List) => (isServerKind ? { ...rest, data: data.toSorted(byId) } : { ...rest, data })
const byId = (one: Row, other: Row) => (one.id < other.id ? -1 : 1)

test.each(listings)('%s prints the same JSON as the list in one go', async (operation) => {
  const { stdout } = await run(operation, '--json')
  expect(stdout).toBe(`${JSON.stringify(JSON.parse(stdout), null, 2)}\n`)
  expect(inOrder(JSON.parse(stdout))).toEqual(inOrder(await list(operation)))
  const none = await run(operation, '--json', '--contains', 'absent')
  expect(none.stdout).toBe(`${JSON.stringify({ data: [] }, null, 2)}\n`)
  expect((await run(operation, '--contains', 'absent')).stdout).toBe('No matches\n')
})

test.each(['keys.list', 'policies.list'] as const)('%s takes --contains in any case and --limit', async (operation) => {
  const { stdout } = await run(operation, '--contains', 'EVEN', '--limit', '2')
  expect(stdout.match(/^Even-/gm)).toHaveLength(2)
  expect(stdout).not.toContain('odd-')
  expect(stdout).toEndWith('2 of 6 rows; to see more, raise or remove --limit\n')
  const json = JSON.parse((await run(operation, '--contains', 'even', '--limit', '2', '--json')).stdout) as List
  expect(json).toMatchObject({ data: [{}, {}], total_count: 6 })
  expect((await run(operation, '--contains', 'even')).stdout).not.toContain('--limit')
  expect(await run(operation, '--limit', '1001')).toMatchObject({ code: 2 })
})

test.each(listings)('pages of %s are together the whole list, in its order, with filters too', async (operation) => {
  const unused = operation === 'issuers.list' ? [] : [{ unused_since: '2020-01-01' }]
  for (const filter of [{}, { contains: 'odd' }, ...unused]) {
    const pages: Row[] = []
    let after: string | undefined = ''
    while (after !== undefined) {
      const page: List = await list(operation, { ...filter, after, limit: 5 })
      expect(page).not.toHaveProperty('total_count')
      expect(page.data.length).toBeLessThanOrEqual(5)
      pages.push(...page.data)
      after = page.next
    }
    expect(pages).toEqual((await list(operation, filter)).data)
  }
  const gone = list(operation, { after: 'gone', limit: 5 })
  await expect(gone).rejects.toMatchObject({ code: 'invalid', reason: pageStartGone })
})

test('a list that is read while its rows are deleted has every row that stays, once', async () => {
  let rows = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((id) => ({ id }))
  const read = (after: string) => {
    const start = after === '' ? 0 : rows.findIndex(({ id }) => id === after) + 1
    if (start === 0 && after !== '') throw new Fault('invalid', 'gone', { reason: pageStartGone })
    const [end, last] = [start + 3, rows[start + 2]]
    return { data: rows.slice(start, end), ...(end < rows.length && last ? { next: last.id } : {}) }
  }
  const deletions = [['a', 'c', 'b']]
  const seen: string[] = []
  const pages = joinPages(read(''), async (after) => {
    // Every row of the first page is deleted before the second is read.
    const deleted = deletions.shift() ?? []
    rows = rows.filter(({ id }) => !deleted.includes(id))
    return read(after)
  })
  for await (const page of pages) seen.push(...page.map(({ id }) => id))
  expect(seen).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  const other = joinPages({ data: [{ id: 'a' }], next: 'a' }, () => Promise.reject(new Fault('invalid', 'other')))
  await expect(Array.fromAsync(other)).rejects.toThrow('other')
})
