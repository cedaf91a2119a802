// Shapes of what a key has for reports: labels, and the header that says whose usage a call is.
import { type } from '../values/shape.ts'
import { textShape, withoutApiKey } from '../values/shapes.ts'
import { attributionHeaderProblem, headerName } from './attribution.ts'

const labelsMax = 16
const labelValueCharactersMax = 128
/** JSON Schema has no flags. */
export const labelName = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/
const valueShape = withoutApiKey(textShape(1, labelValueCharactersMax))

export const labelsShape = type({ '[string]': valueShape })
  .narrow((labels, context) => {
    // For arktype, a list is an object without other names.
    if (Array.isArray(labels)) return context.mustBe('an object')
    const names = Object.keys(labels)
    const wrong = names.find((name) => !labelName.test(name))
    if (wrong !== undefined)
      return context.mustBe(
        `without the name ${JSON.stringify(wrong.slice(0, 80))}: a name has 1 to 63 letters, digits and ._/- and starts with a letter or digit`,
      )
    return names.length <= labelsMax || context.mustBe(`at most ${labelsMax} labels`)
  })
  .configure({ says: `At most ${labelsMax} names with their values, such as \`{"team": "research"}\`` })

export const attributionHeaderShape = type('string')
  .narrow((name, context) => {
    const problem = attributionHeaderProblem(name)
    return problem === undefined || context.mustBe(`another header: ${problem}`)
  })
  .configure({
    says: 'Header whose value says whose usage a call with this key is; none that has another meaning, such as `authorization`',
    pattern: headerName.source,
    minLength: 1,
    maxLength: 64,
  })

/** How long the text before a rotation still works, in seconds. */
export const graceSecondsDefault = 24 * 60 * 60
export const graceSecondsMax = 30 * 24 * 60 * 60
export const graceShape = type(`0 <= number.integer <= ${graceSecondsMax}`).configure({
  says: 'How long the text before still works; 0 ends it at once. Default: a day',
})
