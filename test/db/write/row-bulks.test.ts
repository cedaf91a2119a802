// Many rows in one statement are stored as one statement for each would store them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq, inArray } from 'drizzle-orm'
import fc from 'fast-check'
import { type ApiKey, apiKeys } from '../../../db/schema/schema.ts'
import { apiKeyBulks, updateApiKey } from '../../../db/tables/api-keys.ts'
import { mergeBulks, type Statement } from '../../../db/write/rows.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

let served: TestServer
let first: ApiKey

beforeAll(async () => {
  served = await startTestServer()
  await served.admin('keys.create', { name: 'first', allowed_models: ['a', 'b'], labels: { team: 'one' } })
  first = (await readKeys('first'))[0] as ApiKey
})
afterAll(() => served.stop())

const readKeys = (name: string) => served.server.context.orm.select().from(apiKeys).where(eq(apiKeys.name, name))
const run = (statements: Iterable<Statement>) =>
  served.server.context.database.commit(
    Array.from(statements, (statement) => {
      const { sql, params } = statement.toSQL()
      return { sql, args: params as string[] }
    }),
  )
const keyOf = (index: number): ApiKey => ({
  ...first,
  ...{ id: `bulk-${index}`, name: `bulk-${index}`, hash: String(index).padStart(64, '0') },
  allowedModels: index % 2 === 0 ? [`m-${index}`, "it's"] : null,
  disabled: index % 3 === 0,
})

test('more rows than a statement takes are inserted, with lists, flags and nulls', async () => {
  const rows = Array.from({ length: 1_101 }, (_, index) => keyOf(index))
  const statements = [...mergeBulks(rows.map(apiKeyBulks.insert))]
  expect(statements).toHaveLength(12)
  await run(statements)
  const stored = new Map((await served.server.context.orm.select().from(apiKeys)).map((row) => [row.id, row]))
  for (const row of rows) expect(stored.get(row.id)).toEqual(row)
})

test('any changes of rows are stored as changes of one row each, and no other row changes', async () => {
  const { orm } = served.server.context
  const change = fc.record(
    {
      disabled: fc.boolean(),
      limitNanodollars: fc.option(fc.integer({ min: 0 })),
      allowedModels: fc.option(fc.array(fc.string(), { maxLength: 3 })),
      labels: fc.option(
        fc.dictionary(fc.stringMatching(/^[a-z]{1,3}$/), fc.constantFrom('x', 'y'), {
          maxKeys: 2,
          noNullPrototype: true,
        }),
      ),
      updatedAt: fc.integer({ min: 0 }),
    },
    { requiredKeys: ['updatedAt'] },
  )
  // One more than any sequence changes.
  const ids = Array.from({ length: 9 }, (_, index) => `bulk-${index}`)
  const readAll = () => orm.select().from(apiKeys).where(inArray(apiKeys.id, ids)).orderBy(apiKeys.id)
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async (changes) => {
      const before = await readAll()
      const named = changes.map((each, index) => ({ id: `bulk-${index}`, ...each }))
      await run(mergeBulks(named.map(apiKeyBulks.update)))
      const found = await readAll()
      await run(before.map((row) => updateApiKey(orm, row.id, row)))
      expect(await readAll()).toEqual(before)
      await run(named.map(({ id, ...each }) => updateApiKey(orm, id, each)))
      expect(found).toEqual(await readAll())
    }),
    { numRuns: 15 },
  )
})

test('what never changes is left alone', async () => {
  const [statement] = mergeBulks([apiKeyBulks.update({ ...keyOf(1), organizationId: 'another', name: 'renamed' })])
  expect(statement?.toSQL().sql).not.toMatch(/organization_id|\bid =(?! changed)/)
  expect(statement?.toSQL().sql).toContain('name = ')
})
