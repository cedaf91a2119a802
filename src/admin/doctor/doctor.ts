// The admin operation behind `latchkey doctor`: everything that an operator should act on, without a metrics system.
import { mapInSlices } from '../../../db/read/pace.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import { installationInput, isInstallationOrganization, seesCauses } from '../operation/installation.ts'
import { operation } from '../operation/operation.ts'
import { findOrganization, organizationInput, timeOf } from '../operation/references.ts'
import {
  type OrganizationContext,
  readOrganizations,
  readServer,
  readUpstreamFacts,
  type ServerContext,
  type UpstreamContext,
} from './facts.ts'
import { inOrder } from './findings.ts'
import { judgeUpstream } from './issuer-rules.ts'
import { judgeOrganization } from './organization-rules.ts'
import { judgeServer } from './server-rules.ts'

const examineInput = type({ '+': 'reject', ...organizationInput, ...installationInput })

export const doctorOperations = { 'doctor.examine': operation(examineInput, examineForCaller) }

type DoctorContext = ServerContext & UpstreamContext & OrganizationContext

/** Open pages ask again and again, so that over HTTP a slow examination is kept for a while. */
function examineForCaller(
  context: DoctorContext & Needs<'actor' | 'role' | 'slowReports'>,
  input: typeof examineInput.infer,
) {
  if (context.actor.kind !== 'key') return examine(context, input)
  const about = `doctor ${JSON.stringify(input)} ${seesCauses(context)}`
  return context.slowReports(about, () => examine(context, input))
}

/** Everything, each finding with the organization that it is for: those of the server are for the one that the installation was set up with. */
export async function examineAll(context: DoctorContext) {
  const now = context.now()
  const ids = [...context.registry.organizations.keys()]
  const owner = ids.find((id) => isInstallationOrganization(context.registry, id)) ?? ''
  const ofServer = judgeServer(await readServer(context), now)
  const ofUpstreams = (await readUpstreamFacts(context)).flatMap((each) => judgeUpstream(each, now))
  const judged = await mapInSlices(await readOrganizations(context), (facts) =>
    judgeOrganization(facts, now).map((finding) => ({ ...finding, organizationId: facts.id })),
  )
  return [...[...ofServer, ...ofUpstreams].map((finding) => ({ ...finding, organizationId: owner })), ...judged.flat()]
}

/** Everything, or one organization, with the server where `installation` asks for it and the organization owns it. */
async function examine(
  context: DoctorContext & Needs<'actor' | 'role'>,
  { organization, installation }: typeof examineInput.infer,
) {
  const now = context.now()
  const only = organization === undefined ? undefined : findOrganization(context.registry, organization).id
  const isWhole =
    only === undefined
      ? context.actor.kind !== 'key'
      : installation === true && isInstallationOrganization(context.registry, only)
  const server = isWhole ? await readServer(context) : undefined
  const upstreams = isWhole ? await readUpstreamFacts(context) : []
  const organizations = await readOrganizations(context, { only, showsCauses: seesCauses(context) })
  const judged = await mapInSlices(organizations, (facts) => judgeOrganization(facts, now))
  const ofServer = server === undefined ? [] : judgeServer(server, now)
  const findings = inOrder([...ofServer, ...upstreams.flatMap((each) => judgeUpstream(each, now)), ...judged.flat()])
  return { examined_at: timeOf(now), schema: server?.schema ?? null, findings }
}
