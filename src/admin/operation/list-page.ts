// A page of a list: the names that contain a text, where the page starts, and how many rows it has.
import { nameCharactersMax } from '../../limits.ts'
import { offsetShape, textShape } from '../../values/shapes.ts'
import type { AdminContext } from './context.ts'
import { type LastUse, onlyUnused, withLastUse } from './last-use-response.ts'

const listRowsMax = 1_000

/** Input of lists. Without it, a list is whole. */
export const listPage = {
  'contains?': textShape(1, nameCharactersMax).configure({ says: 'Only names that contain this text, in any case' }),
  'offset?': offsetShape.configure({ says: 'How many rows to skip' }),
  'limit?': `1 <= number.integer <= ${listRowsMax}`,
} as const

type ListPage = { contains?: string; offset?: number; limit?: number }

/** Part of the response to a list that was asked for a page. */
export const totalCount = { 'total_count?': 'number.integer' } as const

/** Shows a page of the rows with their last use. Only what must be known of all rows is read of all. */
export async function showPage<Row, Shown extends { id: string; created_at: string }>(
  context: Pick<AdminContext, 'lastUses'>,
  rows: readonly Row[],
  { unused_since, ...asked }: ListPage & { unused_since?: Date },
  show: (rows: readonly Row[]) => Promise<Shown[]>,
): Promise<{ data: (Shown & LastUse)[]; total_count?: number }> {
  if (unused_since === undefined) {
    const { page, ...total } = pageOfRows(rows, asked)
    return { data: await withLastUse(context, await show(page)), ...total }
  }
  const unused = onlyUnused(await withLastUse(context, await show(rows)), unused_since)
  const { page, ...total } = pageOfRows(unused, asked)
  return { data: page, ...total }
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
