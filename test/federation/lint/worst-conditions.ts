// Conditions that take the linter the longest, as far as we could think of any.
import { conditionCharactersMax } from '../../../src/limits.ts'

/** Parts joined up to the length of a condition. */
function fill(part: (index: number) => string, joint: string, max = conditionCharactersMax): string {
  let text = part(0)
  for (let index = 1; text.length + joint.length + part(index).length <= max; index++) text += joint + part(index)
  return text
}

export const worstConditions: Record<string, string> = {
  'alternatives joined by and': fill((i) => `(claims.a${i}=='x'||claims.b${i}=='y')`, '&&'),
  'tests of one text': fill((i) => `(subject.contains('${i}')||claims.b=='${i}')`, '&&'),
  'conditional expressions': fill((i) => `(claims.a${i}=='x'?claims.b${i}=='y':claims.c${i}=='z')`, '&&'),
  'alternatives within alternatives': fill(
    (j) => `(${fill((i) => `(claims.a${i}==${j}||claims.b${i}==${j})`, '&&', 230)})`,
    '||',
  ),
  'parts that are not followed': fill((i) => `(size(subject)>${i}||size(token_type)>${i})`, '&&'),
  'values of conditional expressions': fill((i) => `(claims.a${i}=='x'?claims.b${i}:subject)=='y'`, '&&'),
  'maps with many keys': fill((j) => `{${fill((i) => `'${i}':'${j}'`, ',', 300)}}[claims.a${j}]==claims.b`, '||'),
  'chained macros': fill((i) => `['${i}'].map(x,x+x).map(x,x+x).map(x,x+x).exists(x,x==subject+claims.a)`, '||'),
  'lists of claims': `[${fill((i) => `claims.a${i}`, ',', 1_850)}].exists(x,x.startsWith('acme')||x==subject)`,
  'joined texts': fill(
    (i) => `('${'a'.repeat(20)}'+claims.b${i}+'${'a'.repeat(20)}').contains('${'a'.repeat(20)}b')`,
    '&&',
  ),
  'many failing tests': fill((i) => `claims.a${i}>0`, '||'),
  'tests that fail for each item': `['${[...'0123456789'].join("','")}'].exists(x,${fill((i) => `x==claims.a${i}`, '||', 1_300)})`,
  'many repositories': `claims.repository in [${fill((i) => `'acme/${i}'`, ',', 1_900)}]`,
  'many subjects': `subject in [${fill((i) => `'repo:a/${i}:pull_request'`, ',', 1_900)}]`,
}
