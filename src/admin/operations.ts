// Everything an admin can do, once. Commands, socket and HTTP run these operations by name; the types of inputs and responses come from here.

import type { OnProgress } from '../../db/read/slices.ts'
import type { Actor } from '../../db/tables/admin-changes.ts'
import type { type } from '../values/shape.ts'
import { archiveOperations } from './archives.ts'
import { auditErasureOperations } from './audit-erasure.ts'
import { auditLogOperations } from './audit-log.ts'
import { auditProofOperations } from './audit-proof.ts'
import { auditTrailOperations } from './audit-trail.ts'
import { backupOperations } from './backup.ts'
import { budgetOperations } from './budgets/budgets.ts'
import { simulationOperations } from './budgets/simulate.ts'
import { workspaceBudgetOperations } from './budgets/workspace-budgets.ts'
import { configOperations } from './config/config.ts'
import { doctorOperations } from './doctor/doctor.ts'
import { bundleSignerOperations } from './issuers/bundle-signers.ts'
import { importOperations } from './issuers/import-bundles.ts'
import { issuerOperations } from './issuers/issuers.ts'
import { keyOperations } from './keys/keys.ts'
import { keyRotationOperations } from './keys/rotate.ts'
import { masterKeyOperations } from './master-key.ts'
import type { OperationRun } from './operation/context.ts'
import type { Operation, RunnerContext } from './operation/operation.ts'
import { organizationOperations } from './organizations.ts'
import { policyOperations } from './policies/policies.ts'
import { presetOperations } from './presets/presets.ts'
import { auditOperations } from './reports/audit.ts'
import { refusedOperations } from './reports/refused.ts'
import { usageOperations } from './reports/usage.ts'
import { usageReportOperations } from './reports/usage-report.ts'
import { serverOperations } from './server.ts'
import { sessionOperations } from './sessions/sessions.ts'
import { signingKeyOperations } from './signing-keys.ts'
import { systemOperations } from './system.ts'
import { priceOperations } from './upstreams/prices.ts'
import { upstreamOperations } from './upstreams/upstreams.ts'
import { alertOperations } from './webhooks/alerts.ts'
import { webhookOperations } from './webhooks/webhooks.ts'

export const operations = {
  ...organizationOperations,
  ...keyOperations,
  ...keyRotationOperations,
  ...issuerOperations,
  ...bundleSignerOperations,
  ...importOperations,
  ...policyOperations,
  ...budgetOperations,
  ...simulationOperations,
  ...workspaceBudgetOperations,
  ...webhookOperations,
  ...alertOperations,
  ...doctorOperations,
  ...archiveOperations,
  ...auditOperations,
  ...auditLogOperations,
  ...auditErasureOperations,
  ...auditProofOperations,
  ...auditTrailOperations,
  ...usageOperations,
  ...usageReportOperations,
  ...refusedOperations,
  ...signingKeyOperations,
  ...serverOperations,
  ...masterKeyOperations,
  ...systemOperations,
  ...backupOperations,
  ...upstreamOperations,
  ...priceOperations,
  ...presetOperations,
  ...configOperations,
  ...sessionOperations,
} satisfies Record<string, Operation>

type Operations = typeof operations
export type OperationName = keyof Operations

/** What an operation takes, as JSON. */
export type OperationInput<Name extends OperationName> = Operations[Name]['input']['inferIn']

/** What an operation returns, as it arrives at its caller. */
export type OperationResponse<Name extends OperationName> = Name extends OperationName
  ? JsonOf<Awaited<ReturnType<Awaited<ReturnType<Operations[Name]['prepare']>>>>>
  : never

/** What all operations need together: the intersection of what each declares. */
type EveryNeed = Operations[OperationName] extends Operation<type.Any, unknown, infer Context> ? Context : never

/** What operations and their runner need of the process. The rest comes with each run. */
export type OperationsContext = Omit<EveryNeed, keyof OperationRun> & RunnerContext

/** What `JSON.stringify` keeps of a value. */
type JsonOf<Value> = Value extends readonly (infer Item)[]
  ? JsonOf<Item>[]
  : Value extends Date
    ? string
    : Value extends object
      ? { [Field in keyof Value]: JsonOf<Value[Field]> }
      : Value

/** Runs one operation. Commands and clients of the local socket have no actor. */
export type RunOperation = <Name extends OperationName>(
  name: Name,
  input: OperationInput<Name>,
  actor?: Actor,
  onProgress?: OnProgress,
) => Promise<OperationResponse<Name>>
