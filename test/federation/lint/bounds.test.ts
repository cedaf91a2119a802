// A lint takes bounded time, whatever the condition: paths, examples and visited nodes are limited.
import { describe, expect, test } from 'bun:test'
import { conditionCharactersMax } from '../../../src/limits.ts'
import { cpuMilliseconds } from '../../support/cpu-time.ts'
import { goodPolicies } from './good-policies.ts'
import { findingsOf } from './linting.ts'

/** Parts joined up to the length of a condition. */
function fill(part: (index: number) => string, joint: string, max = conditionCharactersMax): string {
  let text = part(0)
  for (let index = 1; text.length + joint.length + part(index).length <= max; index++) text += joint + part(index)
  return text
}

const worst: Record<string, string> = {
  'alternatives joined by and': fill((i) => `(claims.a${i}=='x'||claims.b${i}=='y')`, '&&'),
  'tests of one text': fill((i) => `(subject.contains('${i}')||claims.b=='${i}')`, '&&'),
  'conditional expressions': fill((i) => `(claims.a${i}=='x'?claims.b${i}=='y':claims.c${i}=='z')`, '&&'),
  'alternatives within alternatives': fill(
    (j) => `(${fill((i) => `(claims.a${i}==${j}||claims.b${i}==${j})`, '&&', 230)})`,
    '||',
  ),
  'parts that are not followed': fill((i) => `(size(subject)>${i}||size(token_type)>${i})`, '&&'),
  'many repositories': `claims.repository in [${fill((i) => `'acme/${i}'`, ',', 1_900)}]`,
  'many subjects': `subject in [${fill((i) => `'repo:a/${i}:pull_request'`, ',', 1_900)}]`,
}

describe('the time of a lint', () => {
  test.each(Object.entries(worst))('of %s stays below 50 ms of CPU', (_, condition) => {
    expect(findingsOf({ issuer: 'github', condition }).length).toBeGreaterThan(0)
    expect(cpuMilliseconds(() => findingsOf({ issuer: 'github', condition }))).toBeLessThan(50)
  })

  test('of an ordinary policy stays below 5 ms of CPU', () => {
    const milliseconds = cpuMilliseconds(() => goodPolicies.map(findingsOf))
    expect(milliseconds / goodPolicies.length).toBeLessThan(5)
  })
})
