// How many entries a document has, counted before it is parsed: parsing 100,000 takes a minute, only to be refused.
import { entriesMaxOf, kinds } from '../../src/admin/kinds/kinds.ts'
import { Fault } from '../../src/fault.ts'
import { inputEntriesMax } from '../../src/limits.ts'

const smaller =
  'split it into documents of several owners, or leave collections out (config export --document-owner, --only)'

/**
 * Counts the entries of each collection of a block of YAML by their indentation. Other notations are left to the parser.
 * @throws Fault `usage` for a collection with more entries than a document may have
 */
export function rejectLongText(path: string, text: string): void {
  let collection: string | undefined
  let indent: string | undefined
  let count = 0
  for (const line of text.split('\n')) {
    const heading = /^([a-z]+):\s*(#.*)?$/.exec(line)?.[1]
    if (heading !== undefined) [collection, indent, count] = [heading, undefined, 0]
    const item = /^( *)- /.exec(line)?.[1]
    if (collection === undefined || item === undefined) continue
    indent ??= item
    if (item === indent) count++
    if (count > entriesMaxIn(collection))
      throw new Fault('usage', `${JSON.stringify(path)} has ${tooMany(collection)}; ${smaller}`)
  }
}

/** A warning for an export that is too long to be planned; undefined for any other. */
export function describeLong(document: Readonly<Record<string, unknown>>): string | undefined {
  const long = Object.keys(document).find((kind) => {
    const entries = document[kind]
    return Array.isArray(entries) && entries.length > entriesMaxIn(kind)
  })
  return long === undefined ? undefined : `This document has ${tooMany(long)}: ${smaller}`
}

const tooMany = (collection: string) =>
  `more than ${entriesMaxIn(collection).toLocaleString('en-US')} ${collection}, the most that config plan takes`

/** A list of another name is refused after it is parsed. */
function entriesMaxIn(collection: string): number {
  const kind = kinds.find((each) => each === collection)
  return kind === undefined ? inputEntriesMax : entriesMaxOf(kind)
}
