// Budgets of workspaces as the official client has them: one for each interval, in US dollars. Each is an ordinary budget that pools exactly
// that workspace and has one window.
import type { Budget, BudgetPeriod } from '../../../db/schema/budget-schema.ts'
import { insertBudget, updateBudget } from '../../../db/tables/budgets.ts'
import { findWorkspace as findRow } from '../../../db/tables/organizations.ts'
import { Fault } from '../../fault.ts'
import { type } from '../../values/shape.ts'
import { moneyShape, referenceShape } from '../../values/shapes.ts'
import { dollarsMax } from '../kinds/budget-shapes.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { checkNameIsFree, findOrganization, notFound, organizationInput, timeOf } from '../operation/references.ts'
import { checkBudget, rejectCrowdOf } from './budget-rules.ts'
import { draftBudget } from './budgets.ts'

/** From the narrowest. */
const intervals = ['daily', 'weekly', 'monthly', 'lifetime'] as const
type Interval = (typeof intervals)[number]
const periodOf: Record<Interval, BudgetPeriod> = {
  daily: 'day',
  weekly: 'week',
  monthly: 'month',
  lifetime: 'lifetime',
}

export const intervalShape = type.enumerated(...intervals)
const workspaceInput = { '+': 'reject', ...organizationInput, workspace_ref: referenceShape } as const
const listInput = type(workspaceInput)
const oneInput = type({ ...workspaceInput, interval: intervalShape })
const setInput = type({
  ...workspaceInput,
  interval: intervalShape,
  limit_usd: moneyShape(dollarsMax),
  'include_byok_in_budgets?': type('boolean').configure({ says: 'Accepted and ignored' }),
})

export const workspaceBudgetResponse = type({
  id: 'string',
  workspace_id: 'string',
  limit_usd: 'number',
  reset_interval: "'daily' | 'weekly' | 'monthly' | null",
  created_at: 'string',
  updated_at: 'string',
}).configure({ title: 'WorkspaceBudget' })
export const deletedWorkspaceBudget = type({ deleted: 'true' })

export const workspaceBudgetOperations = {
  'budgets.of_workspace': operation(listInput, async (context: ReadContext, input) => {
    const workspace = await findWorkspace(context, input)
    return { data: ofWorkspace(context, workspace).map(show) }
  }),
  'budgets.of_interval': operation(oneInput, async (context: ReadContext, input) =>
    show(await findOne(context, input)),
  ),
  'budgets.set_interval': operation(setInput, set, { mutates: true }),
  'budgets.delete_interval': operation(oneInput, remove, { mutates: true }),
}

type ReadContext = Needs<'orm' | 'registry'>
type WorkspaceBudget = { row: Readonly<Budget>; workspaceId: string; interval: Interval; usd: number }
type Workspace = { id: string; name: string; organizationId: string }

async function findWorkspace(
  { orm, registry }: ReadContext,
  { organization, workspace_ref: reference }: { organization?: string; workspace_ref: string },
): Promise<Workspace> {
  const { id: organizationId } = findOrganization(registry, organization)
  const found = await findRow(orm, organizationId, reference)
  if (found === undefined) throw notFound('workspace', reference)
  return { id: found.id, name: found.name, organizationId }
}

/** From the narrowest interval; of several budgets for one, the oldest. */
function ofWorkspace({ registry }: Needs<'registry'>, { id, organizationId }: Workspace): WorkspaceBudget[] {
  const rows = [...registry.budgets.values()].filter(
    (row) => row.organizationId === organizationId && row.deletedAt === null && row.each === null,
  )
  return intervals.flatMap((interval) => {
    const row = rows.find((each) => isOf(each, id) && each.windows[0]?.per === periodOf[interval])
    return row === undefined ? [] : [{ row, workspaceId: id, interval, usd: row.windows[0]?.usd ?? 0 }]
  })
}

function isOf({ appliesTo, windows }: Readonly<Budget>, workspaceId: string): boolean {
  const { workspaces, ...others } = appliesTo ?? {}
  const [window, more] = windows
  if (Object.keys(others).length > 0 || more !== undefined || window === undefined) return false
  const { per: _per, usd, ...measures } = window
  const isExact = workspaces?.length === 1 && workspaces[0] === workspaceId
  return isExact && usd !== undefined && Object.keys(measures).length === 0
}

async function findOne(context: ReadContext, input: typeof oneInput.infer): Promise<WorkspaceBudget> {
  const workspace = await findWorkspace(context, input)
  const found = ofWorkspace(context, workspace).find(({ interval }) => interval === input.interval)
  if (found !== undefined) return found
  throw new Fault('not_found', `The workspace ${JSON.stringify(workspace.name)} has no ${input.interval} budget`)
}

async function set(context: ChangeContext, { limit_usd: usd, interval, ...named }: typeof setInput.infer) {
  const { orm, registry, now } = context
  const workspace = await findWorkspace(context, named)
  const others = ofWorkspace(context, workspace)
  rejectInverted(others, interval, usd)
  const before = others.find((each) => each.interval === interval)?.row
  const windows = [{ per: periodOf[interval], usd }]
  const name = `workspace ${workspace.name} ${interval}`
  const scope = { workspaces: [workspace.id] }
  if (before === undefined) checkNameIsFree('budget', registry.budgets, name, workspace.organizationId)
  const row =
    before === undefined
      ? draftBudget({ name, windows }, workspace.organizationId, scope, now())
      : { ...before, windows, updatedAt: now() }
  checkBudget(registry, row)
  await rejectCrowdOf(registry, row)
  const statement = before === undefined ? insertBudget(orm, row) : updateBudget(orm, row.id, row)
  await commit(context, [statement], [{ kind: 'budget', id: row.id }])
  return show({ row, workspaceId: workspace.id, interval, usd })
}

/** @throws Fault `invalid` unless limits grow with their intervals */
function rejectInverted(others: readonly WorkspaceBudget[], interval: Interval, usd: number): void {
  const rank = intervals.indexOf(interval)
  for (const other of others) {
    const otherRank = intervals.indexOf(other.interval)
    if (otherRank === rank || (otherRank < rank ? other.usd < usd : other.usd > usd)) continue
    const side = otherRank < rank ? 'more' : 'less'
    throw new Fault(
      'invalid',
      `The ${interval} limit must be ${side} than the ${other.interval} one, ${other.usd} USD: limits decrease as intervals narrow`,
    )
  }
}

async function remove(context: ChangeContext, input: typeof oneInput.infer) {
  const { row } = await findOne(context, input)
  const now = context.now()
  const statement = updateBudget(context.orm, row.id, { deletedAt: now, updatedAt: now })
  await commit(context, [statement], [{ kind: 'budget', id: row.id }])
  return { deleted: true as const }
}

function show({ row, workspaceId, interval, usd }: WorkspaceBudget): typeof workspaceBudgetResponse.infer {
  return {
    id: row.id,
    workspace_id: workspaceId,
    limit_usd: usd,
    reset_interval: interval === 'lifetime' ? null : interval,
    created_at: timeOf(row.createdAt),
    updated_at: timeOf(row.updatedAt),
  }
}
