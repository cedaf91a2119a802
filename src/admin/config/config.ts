// Admin operations on configuration documents: export what is saved, plan what a document would change, and apply it.
import { Fault } from '../../fault.ts'
import { type } from '../../values/shape.ts'
import { nameShape, textShape } from '../../values/shapes.ts'
import { type Entry, type Kind, kinds, recordOf } from '../kinds/kinds.ts'
import type { ChangeContext } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findOrganization, organizationInput } from '../operation/references.ts'
import { isBlocking } from '../policies/policy-lint.ts'
import { applyChanges } from './apply.ts'
import { checkDocuments as check } from './check-documents.ts'
import { collections } from './collections.ts'
import type { planResponse } from './config-response.ts'
import { documentShape } from './document.ts'
import type { DraftContext } from './drafts.ts'
import { type Action, actions, type Change } from './plan.ts'
import { type OwnedDocument, type PreparedDocuments, prepare } from './prepare.ts'

const revisionCharactersMax = 200
const sha256Shape = type('string')
  .narrow((text, context) => /^[0-9a-f]{64}$/.test(text) || context.mustBe('a SHA-256 of 64 lowercase hex digits'))
  .configure({ pattern: '^[0-9a-f]{64}$' })

const exportInput = type({
  '+': 'reject',
  ...organizationInput,
  'owner?': nameShape,
  'only?': type.enumerated(...kinds).array(),
})
/** One document, or several. */
const given = {
  'document?': documentShape,
  'documents?': documentShape
    .array()
    .configure({ says: 'Instead of document: documents of several owners, planned and applied together' }),
} as const
const planInput = type({ '+': 'reject', ...organizationInput, ...given })
const applyInput = type({
  '+': 'reject',
  ...organizationInput,
  ...given,
  'prune?': type('boolean').configure({ says: 'Delete what the owner has and the document no longer names' }),
  'adopt?': type('boolean').configure({ says: 'Let the owner have objects that were made by hand' }),
  'fingerprint?': type('string').configure({ says: 'Of the plan that was reviewed: refuse if it has changed' }),
  'sha256?': sha256Shape.configure({ says: 'Of the file, for the record of the change' }),
  'sha256s?': sha256Shape.array().configure({ says: 'Of the file of each of documents, in their order' }),
  'revision?': textShape(1, revisionCharactersMax).configure({
    says: 'Of the repository, such as a commit, for the record of the change',
  }),
})

export const configOperations = {
  'config.export': operation(exportInput, exportAll),
  'config.plan': operation(
    planInput,
    async (context: DraftContext & Needs<'actor'>, { organization, ...input }) =>
      showPlan(await prepare(context, documentsIn(input), organization, true)),
    { check },
  ),
  'config.apply': operation(applyInput, apply, { mutates: true, check }),
}

/** All of the organization, or what one owner has. Without an owner, upstreams and prices of the installation are included. */
async function exportAll(
  context: Needs<'orm' | 'registry' | 'presets' | 'actor'>,
  { organization, owner, only = [...kinds] }: typeof exportInput.infer,
) {
  const { id, name } = findOrganization(context.registry, organization)
  const exported: Partial<Record<Kind, Entry[]>> = {}
  for (const kind of kinds.filter((each) => only.includes(each))) {
    if (context.actor.kind === 'key' && recordOf(kind).isCommon === true) continue
    const saved = await collections[kind].read(context, id)
    const chosen = saved.filter(({ managedBy }) => owner === undefined || managedBy === owner)
    const sorted = chosen.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    if (sorted.length > 0) exported[kind] = sorted.map(({ entry }) => entry)
  }
  const isLocked = [...context.registry.configDocuments.values()].some(
    (row) => row.organizationId === id && row.owner === owner && row.locked,
  )
  const owned = owner === undefined ? {} : { owner, ...(isLocked ? { owner_locks: true } : {}) }
  return { latchkey: 1, organization: name, ...owned, ...exported }
}

function documentsIn({ document, documents }: Pick<typeof planInput.infer, 'document' | 'documents'>) {
  if ((document === undefined) === (documents === undefined) || documents?.length === 0)
    throw new Fault('invalid', 'Send either document, or documents with at least one')
  return documents ?? (document === undefined ? [] : [document])
}

function digestsIn({ documents, sha256, sha256s }: typeof applyInput.infer, count: number): string[] {
  if (documents === undefined ? sha256s !== undefined : sha256 !== undefined)
    throw new Fault('invalid', 'Send sha256 with document, and sha256s with documents')
  if (sha256s !== undefined && sha256s.length !== count)
    throw new Fault('invalid', 'sha256s must have one entry for each of documents')
  return sha256s ?? (sha256 === undefined ? [] : [sha256])
}

async function apply(context: ChangeContext & DraftContext, input: typeof applyInput.infer) {
  const documents = documentsIn(input)
  const sha256s = digestsIn(input, documents.length)
  const prepared = await prepare(context, documents, input.organization, input.prune === true)
  const { applied, pending, secrets, groupId } = await applyChanges(context, prepared, { ...input, sha256s })
  const shown = showPlan({ ...prepared, changes: applied })
  const isOwnerShown = documents.length > 1
  return { ...shown, pending: pending.map((change) => showChange(change, isOwnerShown)), secrets, group_id: groupId }
}

function showPlan(prepared: PreparedDocuments): typeof planResponse.infer {
  const { documents, changes, findings, differences, failedTests, fingerprint } = prepared
  const [only, second] = documents.map(showDocument)
  const counts = Object.fromEntries(
    actions.map((action) => [action, changes.filter((change) => change.action === action).length]),
  ) as Record<Action, number>
  const wide = findings.filter((each) => each.findings.some(isBlocking)).map(({ policy }) => policy)
  const blocked = [...new Set([...wide, ...failedTests.map(({ policy }) => policy)])]
  const isOne = second === undefined
  const shown = changes.map((change) => showChange(change, !isOne))
  return {
    ...(isOne && only !== undefined ? only : { owner: null, documents: documents.map(showDocument) }),
    ...{ fingerprint, counts, changes: shown, findings, differences, failed_tests: failedTests, blocked },
  }
}

function showDocument({ owner, locks }: OwnedDocument) {
  return { owner, ...(locks === undefined ? {} : { owner_locks: locks }) }
}

function showChange({ kind, name, action, managedBy, owner, fields, policiesAffected }: Change, isOwnerShown: boolean) {
  return {
    ...(isOwnerShown && owner !== undefined ? { owner } : {}),
    ...{ kind, name, action },
    ...(managedBy === undefined ? {} : { managed_by: managedBy }),
    fields,
    ...(policiesAffected === undefined ? {} : { policies_affected: policiesAffected }),
  }
}
