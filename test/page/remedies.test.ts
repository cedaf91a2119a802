// What the page offers to mend a finding or a refusal names operations and reasons that exist, and each finding that an operation mends has its
// button there.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { remedies } from '../../src/admin/doctor/findings.ts'
import { isReason } from '../../src/federation/subject-token/refusal.ts'
import { weakestRoles } from '../../src/keys/roles.ts'

// Read as text: the module needs a browser.
const root = join(import.meta.dirname, '../../src')
const text = readFileSync(join(root, 'page/assets/remedies.js'), 'utf8')
const deeds = [...text.matchAll(/^ {2}'(\w+\.\w+)': \{/gm)].map(([, operation]) => operation ?? '')

test('each operation that mends a finding has a button, which is an operation', () => {
  expect(deeds.length).toBeGreaterThan(10)
  expect(deeds.filter((operation) => !Object.hasOwn(weakestRoles, operation))).toEqual([])
  expect(Object.values(remedies).filter((operation) => operation !== undefined && !deeds.includes(operation))).toEqual(
    [],
  )
})

test('each code that has a remedy is one of a rule', () => {
  const folder = join(root, 'admin/doctor')
  const rules = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  const isOfRule = (code: string) =>
    rules.some((rule) => rule.includes(`'${code}'`)) ||
    (code.startsWith('policy_') && rules.some((rule) => rule.includes(`${code.slice(7)}:`)))
  expect(Object.keys(remedies).filter((code) => !isOfRule(code))).toEqual([])
})

test('each refusal that the page mends is one of an exchange', () => {
  const from = text.indexOf('const decidedByPolicy')
  const named = [...text.slice(from).matchAll(/'([a-z]+_[a-z_]+)'|^ {2}(\w+): \['/gm)].map(
    ([, listed, key]) => listed ?? key ?? '',
  )
  const reasons = named.filter((name) => !['policy_id', 'issuer_id'].includes(name))
  expect(reasons.length).toBeGreaterThan(15)
  expect(reasons.filter((reason) => !isReason(reason))).toEqual([])
})
