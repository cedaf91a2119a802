// arktype as this program uses it. Import `type` from here, never from the package, so that its configuration comes first.
import './shape-config.ts'

export { type } from 'arktype'

export type JsonSchema = { properties?: Record<string, JsonSchema>; required?: string[]; [keyword: string]: unknown }

/**
 * What `configure` may add to a shape for the OpenAPI document: keywords of JSON Schema for rules that the shape checks by a function, and
 * `says`, the description. (In `description` it would end up in error messages.)
 */
export type Statement = {
  says?: string
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
