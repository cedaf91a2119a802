// Admin operations on configuration documents: export what is saved, and plan what a document would change.
import { type } from '../../values/shape.ts'
import { nameShape } from '../../values/shapes.ts'
import { type OperationContext, operation } from '../operation/operation.ts'
import { findOrganization, organizationInput } from '../operation/references.ts'
import { isBlocking } from '../policies/policy-lint.ts'
import { commonKinds, documentShape, type Entry, type Kind, kinds } from './document.ts'
import { readSaved } from './entries.ts'
import { type Action, actions, type Change } from './plan.ts'
import { type Prepared, prepare } from './prepare.ts'

const exportInput = type({ '+': 'reject', ...organizationInput, 'owner?': nameShape })
export const planInput = type({ '+': 'reject', ...organizationInput, document: documentShape })

export const configOperations = {
  'config.export': operation(exportInput, exportAll),
  'config.plan': operation(planInput, async (context, { document, organization }) =>
    showPlan(await prepare(context, document, organization)),
  ),
}

/** All of the organization, or what one owner has. Without an owner, upstreams and prices of the installation are included. */
async function exportAll(context: OperationContext, { organization, owner }: typeof exportInput.infer) {
  const { id, name } = findOrganization(context.registry, organization)
  const collections: Partial<Record<Kind, Entry[]>> = {}
  for (const kind of kinds) {
    if (context.actor.kind === 'key' && commonKinds.includes(kind)) continue
    const saved = await readSaved(context, kind, id)
    const chosen = saved.filter(({ managedBy }) => owner === undefined || managedBy === owner)
    const sorted = chosen.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    if (sorted.length > 0) collections[kind] = sorted.map(({ entry }) => entry)
  }
  return { latchkey: 1, organization: name, ...(owner === undefined ? {} : { owner }), ...collections }
}

export function showPlan({ owner, changes, findings, failedTests, fingerprint }: Prepared) {
  const counts = Object.fromEntries(
    actions.map((action) => [action, changes.filter((change) => change.action === action).length]),
  ) as Record<Action, number>
  const wide = findings.filter((each) => each.findings.some(isBlocking)).map(({ policy }) => policy)
  const blocked = [...new Set([...wide, ...failedTests.map(({ policy }) => policy)])]
  return { owner, fingerprint, counts, changes: changes.map(showChange), findings, failed_tests: failedTests, blocked }
}

function showChange({ kind, name, action, managedBy, fields }: Change) {
  return { kind, name, action, ...(managedBy === undefined ? {} : { managed_by: managedBy }), fields }
}
