// Checks an input with configuration documents, a few entries at a time: a document can have thousands, and other requests come in between.
import { createPace } from '../../../db/read/pace.ts'
import { Fault } from '../../fault.ts'
import { checkShape, type type } from '../../values/shape.ts'
import { entriesMaxOf, type Kind, kinds } from '../kinds/kinds.ts'
import { documentBounds as bounds, documentShape } from './document.ts'

/** About a millisecond of work. */
const entriesAtOnce = 50

type Members = Record<string, unknown>
type DocumentInput = { document?: Members; documents?: Members[] }

/** Returns what `checkShape` returns. @throws Fault `invalid` with what is wrong with the first entry that is wrong */
export async function checkDocuments<Input>(
  shape: (value: unknown) => Input | type.errors,
  value: unknown,
): Promise<Input> {
  if (!isObject(value)) return checkShape(shape, value, bounds)
  const { document, documents } = value
  const bare = {
    ...value,
    ...(document === undefined ? {} : { document: withoutEntries(document) }),
    ...(Array.isArray(documents) ? { documents: documents.map(withoutEntries) } : {}),
  }
  const checked = checkShape(shape, bare, bounds)
  const { document: only, documents: several = [] } = checked as DocumentInput
  if (only !== undefined) await checkEntries(only, document, { field: 'document', path: 'document' })
  for (const [index, each] of several.entries())
    await checkEntries(each, (documents as unknown[])[index], { field: 'documents', path: `documents[${index}]` })
  return checked
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What the entries are cut off from. Anything but a document is refused as it is. */
function withoutEntries(document: unknown): unknown {
  if (!isObject(document)) return document
  const lists = kinds.filter((kind) => Array.isArray(document[kind]))
  return { ...document, ...Object.fromEntries(lists.map((kind) => [kind, []])) }
}

type Place = { field: string; path: string }

/** Puts the checked entries of a given document into the checked one. */
async function checkEntries(checked: Members, given: unknown, place: Place): Promise<void> {
  const pace = createPace()
  for (const kind of kinds) {
    const entries = (given as Members)[kind]
    if (!Array.isArray(entries)) continue
    const most = entriesMaxOf(kind)
    if (entries.length > most)
      throw invalid(`${place.path}.${kind} must be at most length ${most} (was ${entries.length})`, place)
    const list: unknown[] = []
    for (let start = 0; start < entries.length; start += entriesAtOnce) {
      list.push(...checkSome(kind, entries.slice(start, start + entriesAtOnce), start, place))
      await pace()
    }
    checked[kind] = list
  }
}

function checkSome(kind: Kind, entries: readonly unknown[], start: number, place: Place): readonly unknown[] {
  const check = (some: readonly unknown[]) =>
    checkShape(documentShape, { latchkey: 1, [kind]: some }, bounds)[kind] ?? []
  try {
    return check(entries)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
  }
  return entries.flatMap((entry, index) => {
    try {
      return [...check([entry])]
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const message = error.message.replaceAll(`${kind}[0]`, `${place.path}.${kind}[${start + index}]`)
      throw error.field === undefined ? error : invalid(message, place)
    }
  })
}

function invalid(message: string, { field }: Place): Fault {
  return new Fault('invalid', message, { field })
}
