// Edits by hand of what a configuration document made: allowed with a warning, or refused if the document locks what its owner has.

import type { ConfigDocument } from '../../../db/schema/schema.ts'
import type { Actor, ChangeKind } from '../../../db/tables/admin-changes.ts'
import { Fault } from '../../fault.ts'

/** A row before the change, of any table. */
type DocumentObject = {
  managedBy?: string | null
  organizationId?: string
  deletedAt?: number | null
  name?: string
  slug?: string
  model?: string
  bundleSignerId?: string | null
}
type EditContext = {
  registry: { readonly configDocuments: ReadonlyMap<string, Readonly<ConfigDocument>> }
  actor: Actor
  operation?: string
  warn?: ((text: string) => void) | undefined
}

/**
 * Passes a row that was made by hand. Warns about a row of an owner.
 * @throws Fault `conflict` if the owner's document locks it and the caller does not force the edit
 */
export function checkDocumentLock(
  { registry, actor, operation, warn }: EditContext,
  kind: ChangeKind,
  row: object | undefined,
): void {
  const {
    managedBy = null,
    organizationId,
    deletedAt = null,
    name,
    slug,
    model,
    bundleSignerId = null,
  }: DocumentObject = row ?? {}
  if (managedBy === null || deletedAt !== null || actor.kind === 'server') return
  // A document that names a bundle signer leaves the keys to its bundles.
  if (operation === 'issuers.import' && bundleSignerId !== null) return
  // Top-ups are no part of a document.
  if (operation === 'budgets.top_up') return
  const owned = `${kind.replace('_', ' ')} ${JSON.stringify(slug ?? name ?? model)}`
  const isLocked = registry.configDocuments
    .values()
    .some(
      (document) =>
        document.locked &&
        document.owner === managedBy &&
        (organizationId ?? document.organizationId) === document.organizationId,
    )
  if (isLocked && actor.force !== true)
    throw new Fault(
      'conflict',
      `The configuration document of ${JSON.stringify(managedBy)} locks the ${owned}: change the document and apply it`,
      { hint: ', or add --force' },
    )
  warn?.(
    `The ${owned} belongs to the configuration document of ${JSON.stringify(managedBy)}, which will revert this edit when it is applied`,
  )
}
