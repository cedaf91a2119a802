// The JSON Schema of a configuration document, as an editor uses it: with the fields that a file takes from elsewhere.
import { schemaOf } from '../../http/operation-doc.ts'
import type { JsonSchema } from '../../values/shape.ts'
import { kinds, sourcedIn } from '../kinds/kinds.ts'
import { documentShape } from './document.ts'

const fileSource = { type: 'object', required: ['file'], properties: { file: { type: 'string' } } }
const environmentSource = { type: 'object', required: ['env'], properties: { env: { type: 'string' } } }
/** Fields that a file may take from another file or from the environment. */
const sourced = kinds.flatMap(sourcedIn)

/** JSON Schema 2020-12 of what `config plan` reads. */
export function describeDocument(): JsonSchema {
  const schema = withSources(schemaOf(documentShape)) as JsonSchema
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Latchkey configuration',
    ...schema,
  }
}

function withSources(value: unknown, name?: string): unknown {
  if (Array.isArray(value)) return value.map((each) => withSources(each))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([member, each]) => [member, withSources(each, member)] as const)
  const schema: object = Object.fromEntries(members)
  return name !== undefined && sourced.includes(name) ? { anyOf: [schema, fileSource, environmentSource] } : schema
}
