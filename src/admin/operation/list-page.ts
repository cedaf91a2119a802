// A page of a list: the names that contain a text, where the page starts, and how many rows it has.
import { createPace } from '../../../db/read/pace.ts'
import { Fault, pageStartGone } from '../../fault.ts'
import { nameCharactersMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { offsetShape, textShape } from '../../values/shapes.ts'
import type { Needs } from './context.ts'
import {
  isOfUnused,
  type LastUse,
  onlyUnused,
  onlyUnusedIds,
  type UnusedInput,
  withLastUse,
} from './last-use-response.ts'

const listRowsMax = 1_000

/** Input of lists. Without it, a list is whole. */
export const listPage = {
  'contains?': textShape(1, nameCharactersMax).configure({ says: 'Only names that contain this text, in any case' }),
  'offset?': offsetShape.configure({ says: 'How many rows to skip' }),
  'limit?': `1 <= number.integer <= ${listRowsMax}`,
  'after?': type('string').configure({
    says: 'Instead of offset, and without total_count, for reading a long list: next of the page before, empty for the first page',
  }),
} as const

type ListPage = { contains?: string; offset?: number; limit?: number; after?: string }

/** Part of the response to a list that was asked for a page. */
export const totalCount = { 'total_count?': 'number.integer', 'next?': 'string' } as const

/**
 * Shows a page of the rows with their last use. Of all rows, only what selects them is read: `createdAt` has milliseconds since 1970 UTC, or is
 * undefined for a row that is gone.
 */
export async function showPage<Shown extends { id: string }>(
  context: Needs<'lastUses' | 'now'>,
  ids: readonly string[],
  asked: ListPage & UnusedInput,
  {
    show,
    createdAt,
  }: { show: (ids: readonly string[]) => Promise<Shown[]>; createdAt: (id: string) => number | undefined },
): Promise<{ data: (Shown & LastUse)[]; total_count?: number }> {
  const listed = isOfUnused(asked) ? await onlyUnusedIds(context, ids, asked, createdAt) : ids
  const { page, ...total } = pageOfRows(listed, asked)
  return { data: await withLastUse(context, await show(page)), ...total }
}

/**
 * The page that begins after a row, for a reader of the whole list: it costs what its own rows cost, however long the list is. `next` is
 * absent on the last page. A page can have fewer rows than its limit, since which ones are unused is known only of rows that are read.
 * @throws Fault `invalid` with the reason `page_start_gone` if the row after which it begins was deleted
 */
export async function showNext<Shown extends { id: string; created_at: string }>(
  context: Needs<'lastUses' | 'now'>,
  order: readonly string[],
  isListed: (id: string) => boolean,
  { after = '', limit = listRowsMax, ...asked }: ListPage & UnusedInput,
  show: (ids: readonly string[]) => Promise<Shown[]>,
): Promise<{ data: (Shown & LastUse)[]; next?: string }> {
  const start = after === '' ? 0 : order.indexOf(after) + 1
  if (start === 0 && after !== '')
    throw new Fault('invalid', 'The row that after names does not exist: begin again without it', {
      reason: pageStartGone,
    })
  const pace = createPace()
  const page: string[] = []
  let end = start
  for (; end < order.length && page.length < limit; end++) {
    const id = order[end] ?? ''
    if (isListed(id)) page.push(id)
    const wait = pace()
    if (wait !== undefined) await wait
  }
  const shown = await withLastUse(context, await show(page))
  const data = onlyUnused(shown, asked, context.now())
  return { data, ...(end < order.length ? { next: order[end - 1] ?? '' } : {}) }
}

/** A page of rows, and the number of all where a page was asked for. */
export function pageOfRows<Row>(
  rows: readonly Row[],
  { offset = 0, limit }: ListPage,
): { page: Row[]; total_count?: number } {
  if (limit === undefined && offset === 0) return { page: [...rows] }
  return { page: rows.slice(offset, limit === undefined ? undefined : offset + limit), total_count: rows.length }
}

/** Whether a name contains the text, in any case. Every name contains no text. */
export function containsText(contains: string | undefined): (name: string) => boolean {
  if (contains === undefined) return () => true
  const wanted = inAnyCase(contains)
  return (name) => wanted.test(name)
}

/** Searching in place takes a third of the time of converting every text. */
function inAnyCase(text: string): RegExp {
  return new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'), 'iu')
}
