// arktype as this program uses it. Import `type` from here, never from the package.
import { Fault } from '../fault.ts'
import { inputDepthMax, inputEntriesMax } from '../limits.ts'
import { isErrors, type type } from './deferred-type.ts'
import { hideApiKeys } from './id-text.ts'

export { type } from './deferred-type.ts'

/** How deep a value may be nested, and how many entries each list or object in it may have. */
export type Bounds = { depth: number; entries: number }
const usualBounds: Bounds = { depth: inputDepthMax, entries: inputEntriesMax }

/** The value as the shape returns it. @throws Fault `invalid` for a value that the shape refuses, or that is beyond the bounds */
export function checkShape<Input>(
  shape: (value: unknown) => Input | type.errors,
  value: unknown,
  bounds: Bounds = usualBounds,
): Input {
  checkContents(value, bounds, 1)
  const input = shape(value)
  if (isErrors(input)) throw new Fault('invalid', readable(input.summary), fieldsOf(input))
  return input
}

const readable = (message: string) => showCharacters(hideApiKeys(message))

/** Characters that nobody sees, some of which turn the direction of a message, as their codes. */
function showCharacters(message: string): string {
  return message.replace(/[^\P{C}\n\t]/gu, (found) => {
    const code = found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
    return `‹U+${code}›`
  })
}

/** More fields than a form has. */
const fieldsMax = 40

/** The field that the first problem is about; and where there are several, what is wrong at each. */
function fieldsOf(errors: type.errors): Pick<Fault, 'field' | 'fields'> {
  const found = new Map<string, string>()
  for (const { path, message } of errors.slice(0, fieldsMax)) {
    const [name] = path
    if (typeof name === 'string' && !found.has(name)) found.set(name, readable(message))
  }
  const first = errors[0]?.path[0]
  return {
    field: typeof first === 'string' ? first : undefined,
    fields: found.size > 1 ? Object.fromEntries(found) : undefined,
  }
}

/**
 * libSQL truncates a text at its first NUL when it reads, so a policy would change its meaning. Too many entries are refused before the
 * shape is checked, because arktype collects a problem for each.
 */
function checkContents(value: unknown, bounds: Bounds, depth: number): void {
  if (typeof value === 'string' && value.includes('\0'))
    throw new Fault('invalid', 'A value has the character U+0000: remove it')
  if (typeof value !== 'object' || value === null) return
  if (depth > bounds.depth) throw new Fault('invalid', `The input must be nested at most ${bounds.depth} levels deep`)
  // Object.values takes a microsecond for each entry of a list.
  const entries: unknown[] = Array.isArray(value) ? value : Object.values(value)
  if (entries.length > bounds.entries)
    throw new Fault(
      'invalid',
      `A list or object of the input has ${entries.length} entries: send at most ${bounds.entries} entries`,
    )
  for (const entry of entries) checkContents(entry, bounds, depth + 1)
}

export type JsonSchema = { properties?: Record<string, JsonSchema>; required?: string[]; [keyword: string]: unknown }

/**
 * What `configure` adds to a shape for the OpenAPI document: JSON Schema keywords for the rules that the shape checks with a function, and the
 * description as `says` (arktype would use `description` in error messages).
 */
export type Statement = {
  says?: string
  enum?: readonly string[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minProperties?: number
  maxItems?: number
  not?: object
  anyOf?: readonly object[]
}

declare global {
  // biome-ignore lint/style/useConsistentTypeDefinitions: arktype's own interface is merged with this one
  interface ArkEnv {
    meta(): Statement
  }
}
