// After an upgrade, a start runs the tests of all policies once, and only logs failures.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { putTestedEngine, readTestedEngine } from '../../../db/tables/policy-test-runs.ts'
import { testAfterEngineChange } from '../../../src/admin/policies/engine-change.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { until } from '../../support/until.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

test('a start records the engine; another engine logs each failure once', async () => {
  const { context } = latchkey.server
  const engine = await until('the record of the engine', () => readTestedEngine(context.orm))
  const tests = [{ name: 'may', claims: { ref: 'main' }, expect: 'allow' }]
  const fields = { issuer: 'idp', key: 'target', audience: 'llm', condition: 'claims.ref == "main"', tests }
  const { id } = await latchkey.admin('policies.create', { name: 'tested', ...fields })
  const policy = context.registry.policies.get(id)
  if (policy === undefined) throw new Error('The policy is missing')
  // As if another engine had accepted the claims.
  context.registry.policies.set(id, { ...policy, condition: 'claims.ref == "x"' })
  const failures = () => latchkey.logLines.filter((line) => line.includes('policy_test'))

  await testAfterEngineChange(context, () => false)
  expect(failures()).toEqual([])
  await context.writer.write([putTestedEngine(context.orm, 'another', 0)])
  await testAfterEngineChange(context, () => true)
  expect(await readTestedEngine(context.orm)).toBe('another')
  for (let start = 1; start <= 2; start++) await testAfterEngineChange(context, () => false)
  expect(failures()).toHaveLength(1)
  expect(failures()[0]).toContain('policy_test_failed')
  expect(failures()[0]).toContain('expected allow, got condition_false')
  expect(await readTestedEngine(context.orm)).toBe(engine)
})
