// Everything an admin can do, once: the commands call these by name, in this process or through the socket of a running server.
import { auditOperations } from './audit.ts'
import { issuerOperations } from './issuers.ts'
import { keyOperations } from './keys.ts'
import { masterKeyOperations } from './master-key.ts'
import type { Operation } from './operation.ts'
import { organizationOperations } from './organizations.ts'
import { policyOperations } from './policies.ts'
import { presetFileOperations } from './preset-files.ts'
import { presetOperations } from './presets.ts'
import { priceOperations } from './prices.ts'
import { signingKeyOperations } from './signing-keys.ts'
import { upstreamOperations } from './upstreams.ts'
import { usageOperations } from './usage.ts'

export const operations = {
  ...organizationOperations,
  ...keyOperations,
  ...issuerOperations,
  ...policyOperations,
  ...auditOperations,
  ...usageOperations,
  ...signingKeyOperations,
  ...masterKeyOperations,
  ...upstreamOperations,
  ...priceOperations,
  ...presetOperations,
  ...presetFileOperations,
} satisfies Record<string, Operation>

export type OperationName = keyof typeof operations
