// The page has a table of the fields of a policy for its form. It agrees with the table of the API.
import { expect, test } from 'bun:test'
import type { Field } from '../../src/admin/kinds/fields.ts'
import { policyFields } from '../../src/admin/kinds/policy.ts'

type PageField = { form: string; of?: string; isJudged?: true; common?: unknown }

// Not a path that TypeScript follows: the page has its own types.
const page = (await import(`${import.meta.dirname}/../../src/page/assets/policy-fields.js`)) as {
  policyFields: Record<string, PageField>
  heldOf: (policy: object | undefined) => Record<string, unknown>
  sentOf: (values: object) => Record<string, unknown>
}
const table: Readonly<Record<string, Field>> = policyFields

test('the form has every field that can be set, beside the switch', () => {
  const settable = Object.keys(table).filter((name) => table[name]?.shape !== undefined && name !== 'enabled')
  expect(Object.keys(page.policyFields).toSorted()).toEqual(settable.toSorted())
})

test('past exchanges are judged by the fields that a back-test takes', () => {
  for (const [name, { isJudged = false }] of Object.entries(page.policyFields))
    expect([name, isJudged]).toEqual([name, table[name]?.decides?.includes('backtest') === true])
})

test('a response has each of them, and what the form holds of it is sent back', () => {
  const sent: Record<string, unknown> = {
    ...{ name: 'n', issuer: 'i', key: 'k', audience: 'a', tests: [{ name: 't' }], replay_protection: true },
    ...{ max_lifetime_seconds: 60, lint_exceptions: [{ rule: 'dead', because: 'so' }], allowed_models: ['a', 'b'] },
  }
  const shown: Record<string, unknown> = {}
  for (const [name, { of = name }] of Object.entries(page.policyFields)) {
    expect([of, table[of]?.shown !== undefined]).toEqual([of, true])
    sent[name] ??= null
    shown[of] = sent[name]
  }
  expect(page.sentOf(page.heldOf(shown))).toEqual(sent)
  const { common } = page.policyFields.max_lifetime_seconds ?? {}
  expect(common).toBe(table.max_lifetime_seconds?.default)
  expect(page.heldOf(undefined)).toMatchObject({ name: '', subject: '', max_lifetime_seconds: '900', tests: '' })
})
