// What an attribution may be: the text that says whose usage a request is. It names a counter of every budget that has one
// for each attribution.
import { withoutSecrets } from '../fault.ts'
import { storableText } from './bytes.ts'
import { isLonger } from './characters.ts'

/** Unicode code points. */
export const attributionCharactersMax = 128

/** Why a value cannot be an attribution. */
export function attributionProblem(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'is not a string'
  if (value.trim() === '') return 'is empty'
  if (isLonger(value, attributionCharactersMax)) return `must have at most ${attributionCharactersMax} characters`
  if (storableText(value) !== value || !value.isWellFormed()) return 'has characters that cannot be stored'
  return withoutSecrets(value) === value ? undefined : 'looks like a credential'
}
