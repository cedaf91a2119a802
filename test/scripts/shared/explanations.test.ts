// What `policies check` shows: a line a policy, and the steps of the one that matters.
import { describe, expect, test } from 'bun:test'
import { drawExplanations, type Explanation } from '../../../scripts/shared/explanations.ts'
import type { StepName } from '../../../src/federation/subject-token/refusal.ts'

const walked: StepName[] = [
  'policy',
  'token',
  'issuer',
  'times',
  'lengths',
  'subject',
  'audience',
  'scopes',
  'token_type',
]
const all: StepName[] = [...walked, 'keys', 'signature', 'condition', 'attribution']
const passing = (names: StepName[]) => names.map((step) => ({ step, ok: true }))
const accepting = (name: string): Explanation => ({
  policy_id: `id-${name}`,
  policy_name: name,
  accepted: true,
  steps: passing(all),
})
const refusing = (name: string, step: StepName, reason: string, detail?: string): Explanation => {
  const steps = all.map((each) => (each === step ? { step, ok: false, reason, detail } : { step: each, ok: true }))
  return { ...accepting(name), accepted: false, steps }
}

test('one policy is shown with all its steps, in the order of an exchange', () => {
  const lines = drawExplanations([refusing('ci', 'subject', 'subject_mismatch', 'a\u001b[31m')]).split('\n')
  expect(lines[0]).toBe('ci (id-ci) refuses the token')
  expect(lines.slice(1).map((line) => line.slice(2, 15).trim())).toEqual([
    '✓ policy',
    '✓ token',
    '✓ issuer',
    '✓ keys',
    '✓ signature',
    '✓ times',
    '✓ lengths',
    '✗ subject',
    '✓ audience',
    '✓ scopes',
    '✓ token_type',
    '✓ condition',
    '✓ attribution',
  ])
  expect(lines[8]).toBe('  ✗ subject     subject_mismatch: a\\u001b[31m')
})

test('a step that could not be taken is shown as skipped; replay protection that a policy lacks is not', () => {
  const foreign: Explanation = {
    ...refusing('ci', 'issuer', 'issuer_mismatch'),
    steps: passing([...walked, 'condition']),
  }
  const text = drawExplanations([foreign])
  expect(text).toContain('  – keys        skipped\n  – signature   skipped\n')
  expect(text).not.toContain('replay')
  const steps: Explanation['steps'] = [...foreign.steps, { step: 'replay', ok: false, reason: 'jti_missing' }]
  expect(drawExplanations([{ ...foreign, steps }])).toEndWith('  ✗ replay      jti_missing')
})

describe('of several policies', () => {
  const near = refusing('near', 'times', 'expired', 'exp 1')
  const far = refusing('far', 'condition', 'condition_error', 'one\ntwo')

  test('each has a line, and the nearest its steps', () => {
    const lines = drawExplanations([near, far]).split('\n')
    expect(lines.slice(0, 4)).toEqual([
      '✗ near (id-near) refuses at times: expired: exp 1',
      '✗ far (id-far) refuses at condition: condition_error: one',
      '',
      'near (id-near) refuses the token',
    ])
    expect(lines.filter((line) => line.includes('✗ condition'))).toEqual([])
    expect(lines.at(-1)).toContain('--policy')
  })

  test('of which one accepts the lines are enough', () => {
    expect(drawExplanations([accepting('ci'), far]).split('\n')).toEqual([
      '✓ ci (id-ci) accepts the token',
      '✗ far (id-far) refuses at condition: condition_error: one',
    ])
  })

  test('there may be none', () => expect(drawExplanations([])).toBe('No policies to check against'))
})
