// What the service says of sessions: who is signed in, and the list of sessions.

import type { Organization } from '../../../db/schema/schema.ts'
import { roles } from '../../../db/schema/value-names.ts'
import { findWorkspace } from '../../../db/tables/organizations.ts'
import { isEntitled } from '../../federation/policy-binding.ts'
import type { Key } from '../../keys/api-key.ts'
import { actsOf, neededRolesOf } from '../../keys/roles.ts'
import { endOf, type Session } from '../../page/sessions.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'

const named = type({ id: 'string', name: 'string' })
const time = type('string').configure({ format: 'date-time' })

/** A person whom an issuer signed in, and the policy that let them in; null where a key or a link began the session. */
const personShape = type({
  name: 'string',
  issuer_url: 'string',
  subject: 'string',
  policy_id: 'string',
  policy_name: 'string | null',
}).or('null')

/** `may`: the names of what the role allows (roles.ts); `needs`: the weakest role for each of the others. `session_id` and `expires_at` are null where an API key was used instead of a session. */
export const identityResponse = type({
  session_id: 'string | null',
  organization: type({ id: 'string', name: 'string', plan: 'string', workload_identity: 'boolean' }),
  workspace: named,
  key: named,
  person: personShape,
  role: type.enumerated(...roles).or('null'),
  may: 'string[]',
  needs: { '[string]': type.enumerated(...roles) },
  read_only: 'boolean',
  expires_at: time.or('null'),
}).configure({ title: 'Identity' })

/** `opened_by`: the user of the machine who asked for the link, for the operators of the machine. */
export const sessionResponse = type({
  id: 'string',
  key_id: 'string',
  key_name: 'string',
  person: personShape,
  role: type.enumerated(...roles).or('null'),
  read_only: 'boolean',
  'opened_by?': 'string | null',
  client_address: 'string | null',
  created_at: time,
  used_at: time,
  expires_at: time,
  current: 'boolean',
}).configure({ title: 'Session' })

export const endedSessionResponse = type({ id: 'string', ended: 'true' }).configure({ title: 'EndedSession' })

type Names = Needs<'orm'> & {
  registry: PolicyNames & { organizations: ReadonlyMap<string, Readonly<Organization>> }
}
type PolicyNames = { policies: { get: (id: string) => { name: string } | undefined } }

/** Who a key acts for, and the session that uses it. */
export async function showIdentity(
  { orm, registry }: Names,
  key: Key,
  row: Session['row'] | undefined,
): Promise<typeof identityResponse.infer> {
  const organization = registry.organizations.get(key.organizationId)
  const workspace = await findWorkspace(orm, key.organizationId, key.workspaceId)
  if (organization === undefined || workspace === undefined)
    throw new Error(`Key ${key.id} names an organization or workspace that does not exist`)
  const { id, name, plan } = organization
  return {
    session_id: row?.id ?? null,
    organization: { id, name, plan, workload_identity: isEntitled(organization) },
    workspace: { id: workspace.id, name: workspace.name },
    key: { id: key.id, name: key.name },
    person: row === undefined ? null : showPerson(registry, row),
    role: key.role,
    may: actsOf(key.role),
    needs: neededRolesOf(key.role),
    read_only: key.kind !== 'management',
    expires_at: row === undefined ? null : timeOf(endOf(row)),
  }
}

/** `showsUsers`: callers over HTTP do not see the users of the machine. */
export function showSession(
  registry: PolicyNames,
  { row, key }: Session,
  { currentId, showsUsers }: { currentId: string | undefined; showsUsers: boolean },
): typeof sessionResponse.infer {
  return {
    id: row.id,
    key_id: key.id,
    key_name: key.name,
    person: showPerson(registry, row),
    role: key.role,
    read_only: key.kind !== 'management',
    ...(showsUsers ? { opened_by: row.openedBy } : {}),
    client_address: row.clientAddress,
    created_at: timeOf(row.createdAt),
    used_at: timeOf(row.usedAt),
    expires_at: timeOf(endOf(row)),
    current: row.id === currentId,
  }
}

function showPerson({ policies }: PolicyNames, row: Session['row']): typeof personShape.infer {
  const { issuerUrl, subject, person, policyId } = row
  if (issuerUrl === null || subject === null || policyId === null) return null
  const policyName = policies.get(policyId)?.name ?? null
  return { name: person ?? subject, issuer_url: issuerUrl, subject, policy_id: policyId, policy_name: policyName }
}
