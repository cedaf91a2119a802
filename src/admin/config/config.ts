// Admin operations on configuration documents: export what is saved, plan what a document would change, and apply it.
import { type } from '../../values/shape.ts'
import { nameShape, textShape } from '../../values/shapes.ts'
import { type OperationContext, operation } from '../operation/operation.ts'
import { findOrganization, organizationInput } from '../operation/references.ts'
import { isBlocking } from '../policies/policy-lint.ts'
import { applyChanges } from './apply.ts'
import type { planResponse } from './config-response.ts'
import { commonKinds, documentShape, type Entry, type Kind, kinds } from './document.ts'
import { readSaved } from './entries.ts'
import { type Action, actions, type Change } from './plan.ts'
import { type Prepared, prepare } from './prepare.ts'

const revisionCharactersMax = 200
const sha256Shape = type('string')
  .narrow((text, context) => /^[0-9a-f]{64}$/.test(text) || context.mustBe('a SHA-256 of 64 lowercase hex digits'))
  .configure({ pattern: '^[0-9a-f]{64}$' })

const exportInput = type({ '+': 'reject', ...organizationInput, 'owner?': nameShape })
const planInput = type({ '+': 'reject', ...organizationInput, document: documentShape })
const applyInput = type({
  '+': 'reject',
  ...organizationInput,
  document: documentShape,
  'prune?': type('boolean').configure({ says: 'Delete what the owner has and the document no longer names' }),
  'adopt?': type('boolean').configure({ says: 'Let the owner have objects that were made by hand' }),
  'fingerprint?': type('string').configure({ says: 'Of the plan that was reviewed: refuse if it has changed' }),
  'sha256?': sha256Shape.configure({ says: 'Of the file, for the record of the change' }),
  'revision?': textShape(1, revisionCharactersMax).configure({
    says: 'Of the repository, such as a commit, for the record of the change',
  }),
})

export const configOperations = {
  'config.export': operation(exportInput, exportAll),
  'config.plan': operation(planInput, async (context, { document, organization }) =>
    showPlan(await prepare(context, document, organization, true)),
  ),
  'config.apply': operation(applyInput, apply, { mutates: true }),
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
  const isLocked = [...context.registry.configDocuments.values()].some(
    (row) => row.organizationId === id && row.owner === owner && row.locked,
  )
  const owned = owner === undefined ? {} : { owner, ...(isLocked ? { owner_locks: true } : {}) }
  return { latchkey: 1, organization: name, ...owned, ...collections }
}

async function apply(context: OperationContext, { document, organization, ...decisions }: typeof applyInput.infer) {
  const prepared = await prepare(context, document, organization, decisions.prune === true)
  const { applied, pending, secrets, groupId } = await applyChanges(context, prepared, decisions)
  const shown = showPlan({ ...prepared, changes: applied })
  return { ...shown, pending: pending.map(showChange), secrets, group_id: groupId }
}

function showPlan(prepared: Prepared): typeof planResponse.infer {
  const { owner, locks, changes, findings, differences, failedTests, fingerprint } = prepared
  const counts = Object.fromEntries(
    actions.map((action) => [action, changes.filter((change) => change.action === action).length]),
  ) as Record<Action, number>
  const wide = findings.filter((each) => each.findings.some(isBlocking)).map(({ policy }) => policy)
  const blocked = [...new Set([...wide, ...failedTests.map(({ policy }) => policy)])]
  const shown = changes.map(showChange)
  return {
    ...{ owner, fingerprint, counts, changes: shown, findings, differences, failed_tests: failedTests, blocked },
    ...(locks === undefined ? {} : { owner_locks: locks }),
  }
}

function showChange({ kind, name, action, managedBy, fields, policiesAffected }: Change) {
  return {
    ...{ kind, name, action },
    ...(managedBy === undefined ? {} : { managed_by: managedBy }),
    fields,
    ...(policiesAffected === undefined ? {} : { policies_affected: policiesAffected }),
  }
}
