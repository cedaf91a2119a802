// What the linter finds in policies: shown with a policy, and refused when one is saved with a blocking finding.

import { createPace } from '../../../db/read/pace.ts'
import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import { compileCondition, describeConditionFault, isConditionFault } from '../../federation/condition/compile.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { Difference } from '../../federation/lint/difference.ts'
import { lintRules } from '../../federation/lint/rules.ts'
import type { LintedIssuer, LintedPolicy } from '../../federation/lint/witness.ts'
import { shellWord } from '../../runtime/file-access.ts'
import type { Needs } from '../operation/context.ts'
import { findIssuer, findOrganization, findPolicy } from '../operation/references.ts'
import type { lintResponse } from '../operation/responses.ts'
import { newPolicyColumns } from './policy-edit.ts'
import type { lintInput } from './policy-input.ts'

type LintResult = typeof lintResponse.infer
type FindingResponse = LintResult['findings'][number]
type Draft = NonNullable<(typeof lintInput.infer)['drafts']>[number]
type LintInput = LintedPolicy & Pick<PolicyRow, 'conditionEnvironment' | 'lintExceptions'>

/** Of the claims that an error shows. */
const exampleCharactersMax = 600

type Row = LintInput & { issuerId: string }
type ComparisonInput = Row & Pick<PolicyRow, 'enabled'>

/** The findings of a policy, blocking ones first, with the reason of each that is accepted. */
export async function lintRow(context: Needs<'registry'>, row: Row): Promise<FindingResponse[]> {
  return lintAgainst(row, issuerOfRow(context, row))
}

/** A token that only the new policy accepts, and one that only the old policy accepts, as far as one is found. */
export function compareRows(
  context: Needs<'registry'>,
  before: ComparisonInput,
  after: ComparisonInput,
): Promise<Difference> {
  return compareSides([before, issuerOfRow(context, before)], [after, issuerOfRow(context, after)])
}

/** The same for policies whose issuers may not be saved. Other work comes in between. */
export async function compareSides(
  [before, issuerBefore]: [ComparisonInput, LintedIssuer],
  [after, issuerAfter]: [ComparisonInput, LintedIssuer],
): Promise<Difference> {
  const { findAcceptedOnlyBy } = await import('../../federation/lint/difference.ts')
  const old = { policy: before, issuer: issuerBefore, isPaused: !before.enabled }
  const edited = { policy: after, issuer: issuerAfter, isPaused: !after.enabled }
  const pace = createPace()
  const gains = findAcceptedOnlyBy(edited, old)
  await pace()
  const loses = findAcceptedOnlyBy(old, edited)
  return { ...(gains === undefined ? {} : { gains }), ...(loses === undefined ? {} : { loses }) }
}

export function issuerOfRow({ registry }: Needs<'registry'>, { issuerId }: Row): Issuer {
  const issuer = registry.issuers.get(issuerId)
  if (issuer === undefined) throw new Error(`A policy names the issuer ${issuerId}, which the registry lacks`)
  return issuer
}

/** The findings of a policy whose issuer may not be saved. */
export async function lintAgainst(policy: LintInput, issuer: LintedIssuer): Promise<FindingResponse[]> {
  // Most commands and every exchange run without the linter.
  const { lintPolicy } = await import('../../federation/lint/lint.ts')
  return lintPolicy(policy, issuer).map(({ rule, level, detail, witness, example }) => {
    const exception = policy.lintExceptions?.find((each) => each.rule === rule)
    const { means: message, fix } = lintRules[rule]
    return {
      ...{ rule, level, message, fix },
      ...(detail === undefined ? {} : { detail }),
      ...(witness === undefined ? {} : { witness }),
      ...(example === undefined ? {} : { example }),
      ...(exception === undefined ? {} : { allowed_because: exception.because }),
    }
  })
}

/** @throws Fault `invalid` for a blocking finding without an exception */
export async function rejectBlockingFindings(context: Needs<'registry'>, row: PolicyRow): Promise<void> {
  const blocking = (await lintRow(context, row)).filter(isBlocking)
  const [first] = blocking
  if (first === undefined) return
  if (first.rule === 'shared-unknown') throw unansweredFault(context, row, first)
  const rules = blocking.map(({ rule }) => rule)
  const example = exampleIn(first)
  throw new Fault(
    'invalid',
    `${problemOf(context, row)}: ${rules.join(', ')}. ${first.message} ${first.fix.replace(/\.$/, '')}${example}. If this is intended, name the rule in lint_exceptions, with the reason`,
    { hint: ` (--allow ${rules.join(' ')} --because TEXT)` },
  )
}

/** With a management key, strangers would get its role. */
function problemOf({ registry }: Needs<'registry'>, { keyId }: PolicyRow): string {
  const role = registry.keys.get(keyId)?.role ?? null
  return role === null ? 'The policy is too wide' : `Strangers could sign in as ${role}`
}

function unansweredFault(context: Needs<'registry'>, row: PolicyRow, finding: FindingResponse): Fault {
  const { name, issuerUrl } = issuerOfRow(context, row)
  return new Fault(
    'invalid',
    `Nobody has answered whether strangers can get tokens of the issuer ${JSON.stringify(name)} (${issuerUrl}). If they can, the policy may be too wide: ${finding.detail}${exampleIn(finding)}. Answer first: set shared of the issuer to false or true`,
    { reason: 'shared_unknown', hint: ` (latchkey issuers update ${shellWord(name)} --shared no, or yes)` },
  )
}

function exampleIn({ example }: FindingResponse): string {
  return example === undefined ? '' : `. This token would pass: ${shorten(JSON.stringify(example))}`
}

/** Whether nobody has accepted it. */
export function isBlocking({ level, allowed_because }: FindingResponse): boolean {
  return level === 'blocking' && allowed_because === undefined
}

function shorten(text: string): string {
  return text.length <= exampleCharactersMax ? text : `${text.slice(0, exampleCharactersMax)}…`
}

/** One policy, drafts, or all policies of the organization. Other work comes in between. */
export async function lintPolicies(
  context: Needs<'registry'>,
  { organization, policy, policies, drafts }: typeof lintInput.infer,
): Promise<{ data: LintResult[] }> {
  const { registry } = context
  const { id: organizationId } = findOrganization(registry, organization)
  if ([policy, policies, drafts].filter((each) => each !== undefined).length > 1)
    throw new Fault(
      'invalid',
      'Send policy, policies or drafts, and only one of them: drafts are policies that are not saved',
    )
  const pace = createPace()
  const data: LintResult[] = []
  if (drafts !== undefined) {
    for (const draft of drafts) {
      data.push(await lintDraft(context, draft, organizationId))
      await pace()
    }
    return { data }
  }
  const named = policy === undefined ? policies : [policy]
  const chosen = named?.map((each) => findPolicy(registry, each, organizationId)) ?? registry.policies.values()
  for (const row of chosen) {
    if (row.organizationId !== organizationId || row.deletedAt !== null) continue
    const issuer_url = registry.issuers.get(row.issuerId)?.issuerUrl ?? ''
    data.push({ policy_id: row.id, policy_name: row.name, issuer_url, findings: await lintRow(context, row) })
    await pace()
  }
  return { data }
}

async function lintDraft(context: Needs<'registry'>, draft: Draft, organizationId: string): Promise<LintResult> {
  const { condition = null, subject = null } = draft
  if (condition === null && subject === null)
    throw new Fault('invalid', 'A policy must restrict its subjects: set subject, condition or both')
  const compiled = condition === null ? undefined : compileCondition(condition)
  if (condition !== null && compiled !== undefined && isConditionFault(compiled))
    throw new Fault('invalid', `The condition cannot be linted: ${describeConditionFault(condition, compiled)}`, {
      field: 'condition',
    })
  const policy = newPolicyColumns(draft)
  const issuer = issuerOf(context, draft, organizationId)
  const { name = null } = draft
  return {
    policy_id: null,
    policy_name: name,
    issuer_url: issuer.issuerUrl,
    findings: await lintAgainst(policy, issuer),
  }
}

function issuerOf(
  { registry }: Needs<'registry'>,
  { issuer, issuer_url }: Draft,
  organizationId: string,
): LintedIssuer {
  if (issuer !== undefined) return findIssuer(registry, issuer, organizationId)
  if (issuer_url === undefined) throw new Fault('invalid', 'A draft must name its issuer: set issuer or issuer_url')
  const saved = [...registry.issuers.values()].find(
    (row) => row.organizationId === organizationId && row.deletedAt === null && row.issuerUrl === issuer_url,
  )
  return { issuerUrl: issuer_url, maxTokenAgeSeconds: null, shared: saved?.shared ?? null }
}
