// A verified token for condition tests, and a condition that must compile.

import {
  type Condition,
  compileCondition,
  describeConditionFault,
  isConditionFault,
} from '../../src/federation/condition/compile.ts'
import type { SubjectToken } from '../../src/federation/subject-token/claims.ts'

/** A verified token with claims of every type, plus `more`. */
export function conditionToken(more: Record<string, unknown>): SubjectToken {
  const payload = {
    iat: 1_700_000_000,
    numbers: [1, 2],
    groups: ['team-a', 'other'],
    environment: 'production',
    nested: { a: { b: 'x' } },
    yes: true,
    none: null,
    empty: [],
    ...more,
  }
  return {
    algorithm: 'ES256',
    kid: undefined,
    issuer: 'i',
    subject: 'repo:acme/app:ref:refs/heads/main',
    audience: ['aud', 'other'],
    payload,
  }
}

/** @throws Error that explains why the source is not a valid condition */
export function compiled(source: string): Condition {
  const condition = compileCondition(source)
  if (isConditionFault(condition)) throw new Error(describeConditionFault(source, condition))
  return condition
}
