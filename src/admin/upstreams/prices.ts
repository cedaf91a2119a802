// Admin operations on prices: US dollars per million tokens, by model pattern. They apply if an upstream does not report a cost.
import { mapInSlices } from '../../../db/read/pace.ts'
import type { Price } from '../../../db/schema/upstream-schema.ts'
import { deletePrice, findPrices, listPrices, putPrices } from '../../../db/tables/upstreams.ts'
import { Fault } from '../../fault.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { pricesAtOnceMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { timeShape } from '../../values/shapes.ts'
import { given, newColumnsOf, responseOf, showFields } from '../kinds/fields.ts'
import { laterPricesIn, laterPricesMax, priceFields } from '../kinds/price.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { containsText, listPage, pageOfRows, totalCount } from '../operation/list-page.ts'
import { operation } from '../operation/operation.ts'
import { notFound } from '../operation/references.ts'

export const priceShape = type({ '+': 'reject', ...given(priceFields, 'create') })
/** `from`: the price changes then, and stays as it is until then. */
const settingShape = priceShape.merge({ 'from?': timeShape })
const importInput = type({
  '+': 'reject',
  prices: settingShape.array().moreThanLength(0).atMostLength(pricesAtOnceMax),
  'if_match?': 'string',
})
export const priceListResponse = type({
  data: type(responseOf(priceFields)).array(),
  ...totalCount,
})
export const savedPricesResponse = type({ data: type(responseOf(priceFields)).array() })
export const removedPriceResponse = type({ model: 'string', deleted: 'boolean' })
const oneInput = type({ '+': 'reject', model: 'string' })

export const priceOperations = {
  'prices.list': operation(type({ '+': 'reject', ...listPage }), async ({ reader }: Needs<'reader'>, input) => {
    const fits = containsText(input.contains)
    const rows = (await listPrices(reader)).filter(({ model }) => fits(model))
    const { page, ...total } = pageOfRows(rows, input)
    return { data: await mapInSlices(page, showPrice), ...total }
  }),
  /** All of them or none. */
  'prices.set': operation(importInput, setPrices, { mutates: true }),
  'prices.remove': operation(oneInput, removePrice, { mutates: true }),
}

async function setPrices(context: ChangeContext, { prices, if_match }: typeof importInput.infer) {
  const models = prices.map(({ model }) => model)
  const known = new Map((await findPrices(context.orm, models)).map((row) => [row.model, row]))
  if (if_match !== undefined) checkVersion(models, known, if_match)
  const rows = await mapInSlices(prices, ({ from, ...price }): Price => {
    const found = known.get(price.model)
    const before = found?.deletedAt === null ? found : undefined
    const drafted = draftPrice(price, context.now())
    // An edit by hand does not take a price from the document that made it, and no later price unless it says so.
    const kept = {
      managedBy: before?.managedBy ?? null,
      later: price.later === undefined ? laterThan(before?.later ?? null, context.now()) : drafted.later,
    }
    const isNow = from === undefined || from.getTime() <= context.now()
    if (!isNow && before === undefined)
      throw new Fault(
        'not_found',
        `There is no price for ${JSON.stringify(price.model)} to change later: set one without from first`,
      )
    const row =
      isNow || before === undefined
        ? { ...drafted, ...kept }
        : { ...before, later: addLater(before.later, from, price), updatedAt: context.now() }
    // The list can have the model again.
    known.set(row.model, row)
    return row
  })
  await commit(
    context,
    putPrices(rows),
    rows.map(({ model: id }) => ({ kind: 'price', id })),
  )
  return { data: await mapInSlices(rows, showPrice) }
}

/** @throws Fault `precondition_failed` if another price is there by now, or none */
function checkVersion([model = '', ...more]: string[], known: ReadonlyMap<string, Price>, ifMatch: string): void {
  if (more.length > 0) throw new Fault('invalid', 'If-Match is for a single price: send each in its own request')
  const found = known.get(model)
  const isThere = found !== undefined && found.deletedAt === null
  checkUnchanged(isThere ? found : undefined, ifMatch, isThere ? () => showPrice(found) : undefined)
}

/** Those that have not taken effect: one that has would win over what is set now. */
function laterThan(later: string | null, now: number): string | null {
  const left = laterPricesIn(later).filter(({ from }) => from.getTime() > now)
  return left.length === 0 ? null : (priceFields.later.stored.toColumn(left) as string)
}

/** Replaces one from the same time. @throws Fault `invalid` for too many */
function addLater(later: string | null, from: Date, price: typeof priceShape.infer): string {
  const { prompt, completion, cached = null, character = null, image = null, audio_second = null } = price
  const others = laterPricesIn(later).filter((each) => each.from.getTime() !== from.getTime())
  if (others.length >= laterPricesMax)
    throw new Fault('invalid', `A price has at most ${laterPricesMax} later ones: replace them with --later`)
  const added = { from, prompt, completion, cached, character, image, audio_second }
  return priceFields.later.stored.toColumn([...others, added]) as string
}

/** The row of a price; `now` in milliseconds. */
export function draftPrice(input: typeof priceShape.infer, now: number): Price {
  const columns = newColumnsOf<Price>(priceFields, input) as Omit<Price, 'updatedAt' | 'deletedAt' | 'managedBy'>
  return { ...columns, updatedAt: now, deletedAt: null, managedBy: null }
}

async function removePrice(context: ChangeContext, { model }: typeof oneInput.infer) {
  const known = (await listPrices(context.orm)).find((row) => row.model === model)
  if (known === undefined) throw notFound('price', model)
  await commit(context, [deletePrice(context.orm, model, context.now())], [{ kind: 'price', id: model }])
  return { model, deleted: true }
}

function showPrice(row: Price) {
  return showFields(priceFields, row, {}) as (typeof priceListResponse.infer)['data'][number]
}
