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
  'many repositories': `claims.repository in [${fill((i) => `'acme/${i}'`, ',', 1_900)}]`,
  'many subjects': `subject in [${fill((i) => `'repo:a/${i}:pull_request'`, ',', 1_900)}]`,
}
