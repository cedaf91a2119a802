// Runs the tests of all policies once after an upgrade: a new engine could decide differently. It changes no policy.

import { putTestedEngine, readTestedEngine } from '../../../db/tables/policy-test-runs.ts'
import packageJson from '../../../package.json' with { type: 'json' }
import { describeError } from '../../fault.ts'
import { conditionEnvironment } from '../../federation/condition/compile.ts'
import type { Needs } from '../operation/context.ts'
import { describeFailure, testAll } from './policy-tests.ts'

/** What decides about tokens: this program, its CEL library, and the variables of conditions. */
const engine = `${packageJson.version} cel-js ${packageJson.dependencies['@marcbachmann/cel-js']} environment ${conditionEnvironment}`

/**
 * Runs the tests if another engine ran them last, logs each failure, and records the engine. Never rejects. It ends
 * early, without the record, when `isStopping` says so.
 */
export async function testAfterEngineChange(
  context: Needs<'orm' | 'writer' | 'registry' | 'now' | 'log'>,
  isStopping: () => boolean,
): Promise<void> {
  const { orm, writer, now, log } = context
  try {
    const before = await readTestedEngine(orm)
    if (before === engine) return
    for await (const { response } of testAll(context)) {
      if (isStopping()) return
      for (const result of response.tests)
        if (!result.ok)
          log('error', 'policy_test_failed', {
            policy_id: response.policy_id,
            policy: response.policy_name,
            reason: describeFailure(result),
          })
    }
    await writer.write([putTestedEngine(orm, engine, now())])
  } catch (error) {
    if (!isStopping()) log('error', 'policy_tests_not_run', { reason: describeError(error) })
  }
}
