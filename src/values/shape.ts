// arktype as this program uses it. Import `type` from here, never from the package, so that its configuration comes first.
import './shape-config.ts'
import { type } from 'arktype'
import { Fault } from '../fault.ts'
import { inputDepthMax, inputEntriesMax } from '../limits.ts'

export { type } from 'arktype'

/** @throws Fault `invalid` for what the shape refuses, and for what nothing takes, whatever its shape */
export function checkShape<Input>(shape: (value: unknown) => Input | type.errors, value: unknown): Input {
  checkContents(value, 1)
  const input = shape(value)
  if (input instanceof type.errors) throw new Fault('invalid', input.summary)
  return input
}

/**
 * libSQL ends a text at its first NUL when it reads it back, and a policy would mean something else than was saved. Too many entries are
 * refused before a shape sees them: arktype collects a problem for each.
 */
function checkContents(value: unknown, depth: number): void {
  if (typeof value === 'string' && value.includes('\0'))
    throw new Fault('invalid', 'No value may hold the character U+0000')
  if (typeof value !== 'object' || value === null) return
  if (depth > inputDepthMax) throw new Fault('invalid', 'The input is nested too deeply')
  // Object.values would take a microsecond for each entry of a list.
  const entries: unknown[] = Array.isArray(value) ? value : Object.values(value)
  if (entries.length > inputEntriesMax)
    throw new Fault(
      'invalid',
      `A list or object of the input may have at most ${inputEntriesMax} entries, and one has ${entries.length}`,
    )
  for (const entry of entries) checkContents(entry, depth + 1)
}

export type JsonSchema = { properties?: Record<string, JsonSchema>; required?: string[]; [keyword: string]: unknown }

/**
 * What `configure` may add to a shape for the OpenAPI document: keywords of JSON Schema for rules that the shape checks by a function, and
 * `says`, the description. (In `description` it would end up in error messages.)
 */
export type Statement = {
  says?: string
  enum?: readonly string[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minProperties?: number
  not?: object
  anyOf?: readonly object[]
}

declare global {
  // biome-ignore lint/style/useConsistentTypeDefinitions: arktype's own interface is merged with this one
  interface ArkEnv {
    meta(): Statement
  }
}
