// The fields of an API key that say what it is for: inference, or management with a role. They never change.

import type { ApiKey } from '../../../db/schema/schema.ts'
import { keyKinds, roles } from '../../../db/schema/value-names.ts'
import { type } from '../../values/shape.ts'
import type { Fields } from './fields.ts'

export const keyRoleFields = {
  kind: {
    shape: type.enumerated(...keyKinds),
    default: 'inference',
    change: false,
    entry: false,
    column: 'kind',
    shown: type.enumerated(...keyKinds),
    line: 'kind',
  },
  role: {
    shape: type
      .enumerated(...roles)
      .configure({ says: 'What a management key may do; by default it is an admin, or a viewer if it is read-only' }),
    change: false,
    entry: false,
    column: 'role',
    isResolved: true,
    shown: type.enumerated(...roles).or('null'),
    line: 'role?',
    flag: {
      option: '--role <role>',
      says: 'what the management key may do (see: latchkey help roles)',
      choices: roles,
    },
  },
} as const satisfies Fields<ApiKey>
