// Admin operations on budgets: what may be spent, by whom and in which time. Requests obey what is saved here.

import type { Budget, BudgetScope, BudgetTopUp } from '../../../db/schema/budget-schema.ts'
import { insertBudget, updateBudget } from '../../../db/tables/budgets.ts'
import { Fault } from '../../fault.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { type } from '../../values/shape.ts'
import { referenceShape, textShape, timeShape } from '../../values/shapes.ts'
import { budgetFields } from '../kinds/budget.ts'
import { isTopUp, topUpAmounts, topUpReason } from '../kinds/budget-shapes.ts'
import { columnsOf, given, newColumnsOf } from '../kinds/fields.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { containsText, listPage, pageOfRows } from '../operation/list-page.ts'
import { operation } from '../operation/operation.ts'
import { checkChanges, checkNameIsFree, findOrganization, findRow, organizationInput } from '../operation/references.ts'
import { type ShowContext, showBudget, showSpent } from './budget-response.ts'
import { checkBudget, findContradictions, rejectCrowdOf } from './budget-rules.ts'
import { resolveScope, workspaceNames } from './resolve-scope.ts'

const [valuesOfOne, valuesOfMany, topUpsMax] = [100, 5, 100]
const valueCharactersMax = 512

const creation = type({ '+': 'reject', ...organizationInput, ...given(budgetFields, 'create') })
const changing = type({
  '+': 'reject',
  ...organizationInput,
  ...given(budgetFields, 'change'),
  budget: referenceShape,
  'if_match?': 'string',
}).configure({ minProperties: 1 })
const oneInput = type({ '+': 'reject', ...organizationInput, budget: referenceShape })
const topUpInput = type({
  '+': 'reject',
  ...organizationInput,
  budget: referenceShape,
  ...topUpAmounts,
  until: timeShape,
  because: topUpReason,
  'value?': textShape(1, valueCharactersMax).configure({ says: 'Only for this value of each' }),
}).narrow((input, context) => isTopUp(input) || context.mustBe('a top-up with an amount: add usd, tokens or requests'))

export const budgetOperations = {
  'budgets.create': operation(creation, createBudget, { mutates: true }),
  'budgets.list': operation(type({ '+': 'reject', ...organizationInput, ...listPage }), listAll),
  'budgets.show': operation(oneInput, async (context: ShowContext & Needs<'orm'>, input) =>
    show(context, pick(context, input)),
  ),
  'budgets.update': operation(changing, changeBudget, { mutates: true }),
  'budgets.delete': operation(oneInput, deleteBudget, { mutates: true }),
  'budgets.top_up': operation(topUpInput, topUp, { mutates: true }),
}

type Changing = ChangeContext & ShowContext & Needs<'warn'>

async function createBudget(context: Changing, { applies_to, ...input }: typeof creation.infer) {
  const { orm, registry, now } = context
  const { id: organizationId } = findOrganization(registry, input.organization)
  checkNameIsFree('budget', registry.budgets, input.name, organizationId)
  const row = draftBudget(input, organizationId, await resolveScope(context, organizationId, applies_to), now())
  checkBudget(registry, row)
  await rejectCrowdOf(registry, row)
  await commit(context, [insertBudget(orm, row)], [{ kind: 'budget', id: row.id }])
  return showChanged(context, row)
}

/** The row of a new budget; `now` in milliseconds. */
export function draftBudget(
  input: Omit<typeof creation.infer, 'applies_to' | 'organization'>,
  organizationId: string,
  appliesTo: BudgetScope | null,
  now: number,
): Budget {
  const columns = newColumnsOf<Budget>(budgetFields, input)
  const rest = { enabled: true, topUps: null, managedBy: null, createdAt: now, updatedAt: now, deletedAt: null }
  return { id: crypto.randomUUID(), organizationId, ...columns, appliesTo, ...rest } as Budget
}

async function changeBudget(context: Changing, { applies_to, ...input }: typeof changing.infer) {
  checkChanges({ ...input, ...(applies_to === undefined ? {} : { applies_to }) }, [
    'organization',
    'budget',
    'if_match',
  ])
  const { orm, registry, now } = context
  const before = pick(context, input)
  checkUnchanged(before, input.if_match)
  if (input.name !== undefined)
    checkNameIsFree('budget', registry.budgets, input.name, before.organizationId, before.id)
  const scope =
    applies_to === undefined ? {} : { appliesTo: await resolveScope(context, before.organizationId, applies_to) }
  const row: Budget = { ...before, ...columnsOf<Budget>(budgetFields, input), ...scope, updatedAt: now() }
  checkBudget(registry, row)
  await rejectCrowdOf(registry, row)
  await commit(context, [updateBudget(orm, row.id, row)], [{ kind: 'budget', id: row.id }])
  return showChanged(context, row)
}

async function deleteBudget(context: ChangeContext, input: typeof oneInput.infer) {
  const { id } = pick(context, input)
  const now = context.now()
  await commit(context, [updateBudget(context.orm, id, { deletedAt: now, updatedAt: now })], [{ kind: 'budget', id }])
  return { id, deleted: true }
}

/** The schedule stays as it is. Top-ups that have ended are dropped; the record of changes keeps them. */
async function topUp(context: Changing, { organization, budget, until, ...more }: typeof topUpInput.infer) {
  const { orm, now } = context
  const before = pick(context, { ...(organization === undefined ? {} : { organization }), budget })
  if (until.getTime() <= now()) throw new Fault('invalid', 'until is in the past: give a time in the future')
  if (more.value !== undefined && before.each === null)
    throw new Fault('invalid', 'This budget has no each, so it has no values: leave value out')
  const added: BudgetTopUp = { ...more, until: until.getTime(), at: now() }
  const topUps = [...(before.topUps ?? []).filter((each) => each.until > now()), added]
  if (topUps.length > topUpsMax)
    throw new Fault('invalid', `The budget has ${topUpsMax} top-ups that have not ended: raise its windows instead`)
  const row: Budget = { ...before, topUps, updatedAt: now() }
  await commit(context, [updateBudget(orm, row.id, row)], [{ kind: 'budget', id: row.id }])
  return show(context, row)
}

async function listAll(
  context: ShowContext & Needs<'orm'>,
  { organization, ...asked }: { organization?: string; contains?: string; offset?: number; limit?: number },
) {
  const { registry } = context
  const { id } = findOrganization(registry, organization)
  const fits = containsText(asked.contains)
  const rows = [...registry.budgets.values()].filter(
    (row) => row.organizationId === id && row.deletedAt === null && fits(row.name),
  )
  const { page, ...total } = pageOfRows(rows, asked)
  const names = await workspaceNames(context, id)
  const data: Awaited<ReturnType<typeof show>>[] = []
  for (const row of page)
    data.push({
      ...showBudget(context, row, (workspace) => names.get(workspace) ?? workspace),
      ...(await showSpent(context, row, valuesOfMany)),
    })
  return { data, ...total }
}

function pick({ registry }: Needs<'registry'>, { organization, budget }: typeof oneInput.infer): Readonly<Budget> {
  return findRow(registry, 'budget', registry.budgets, budget, findOrganization(registry, organization).id)
}

async function show(context: ShowContext & Needs<'orm'>, row: Readonly<Budget>) {
  const names = await workspaceNames(context, row.organizationId)
  return {
    ...showBudget(context, row, (id) => names.get(id) ?? id),
    ...(await showSpent(context, row, valuesOfOne)),
  }
}

async function showChanged(context: Changing, row: Budget) {
  for (const text of findContradictions(row)) context.warn?.(text)
  return show(context, row)
}
