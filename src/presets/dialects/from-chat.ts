// The chat-completions body that a preset is made of: what of it is valid, and what of it a preset stores.
import { allOf, crossField, object } from '../schema/check.ts'
import { type Fields, isObject, memberOf } from '../schema/fields.ts'
import { isInstruction, textsOf } from '../schema/messages.ts'
import { configKeys, keptParameters, passingParameters } from '../schema/parameters.ts'
import { type Problem, problemsOf } from '../schema/validation.ts'

export const chatBody = allOf(
  object({ ...keptParameters, ...passingParameters }),
  crossField('reasoning_effort', effortsAgree, 'must not differ from reasoning.effort'),
)

/** The problems of a chat-completions body, ten at most (reference: Preset parameters; Limits). */
export function chatBodyProblems(body: Fields): Problem[] {
  return problemsOf(body, chatBody)
}

/** The stored, non-null fields of a valid chat body, as they were sent; the service tier `fast` becomes `priority` (reference: Preset parameters). */
export function chatConfig(body: Fields): Fields {
  const config: Fields = {}
  for (const key of configKeys) {
    const value = memberOf(body, key)
    if (value !== undefined) config[key] = key === 'service_tier' && value === 'fast' ? 'priority' : value
  }
  return config
}

function effortsAgree(body: Fields): boolean {
  const shorthand = memberOf(body, 'reasoning_effort')
  const reasoning = memberOf(body, 'reasoning')
  const effort = isObject(reasoning) ? memberOf(reasoning, 'effort') : undefined
  return shorthand === undefined || effort === undefined || shorthand === effort
}

/** The texts of every system and developer message of a valid body, in order (reference: System prompt). */
export function chatSystemTexts(body: Fields): string[] {
  return (body.messages as Fields[]).filter(isInstruction).flatMap(({ content }) => textsOf(content))
}
