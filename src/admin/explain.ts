// Why a token is refused: walks it through every step of an exchange, with the same rules, and goes on after the first that fails.
import { findUsedSubjectToken } from '../../db/used-subject-tokens.ts'
import type { AdminContext } from '../context.ts'
import { checkLengths, checkTimes, narrowSubjectToken, type SubjectToken } from '../federation/claims.ts'
import { type Condition, explainCondition, type SubExpression } from '../federation/condition.ts'
import { isSignedBy } from '../federation/jws.ts'
import { parseJwtText } from '../federation/jwt-text.ts'
import { describeMismatch } from '../federation/mismatch.ts'
import { type Policy, rules } from '../federation/policy.ts'
import { isRefusal, type Refusal, refuse, refuseNotJwt, type Step } from '../federation/refusal.ts'
import { hashTokenId } from '../federation/replay.ts'
import { checkStanding, readStanding } from '../federation/standing.ts'

export type ExplainedStep = { step: Step; ok: boolean; reason?: string; detail?: string }
export type Explanation = {
  policy_id: string
  policy_name: string
  accepted: boolean
  steps: ExplainedStep[]
  /** What the parts of the condition are for this token. */
  condition?: SubExpression[]
}

/** The claims of a token that is at least one by its form, or the refusal. */
export function readToken(text: string): SubjectToken | Refusal {
  const jwt = parseJwtText(text)
  return jwt === undefined ? refuseNotJwt(text) : narrowSubjectToken(jwt)
}

/** All steps for one policy. Nothing is used up: whether the token was exchanged before is only looked at. */
export async function explain(context: AdminContext, policy: Policy, text: string): Promise<Explanation> {
  const steps: ExplainedStep[] = []
  const note = (step: Step, refusal: Refusal | undefined) => steps.push(explainedStep(step, refusal))
  const standing = readStanding(context.registry, policy.id)
  if (standing === undefined) throw new Error(`The registry lacks policy ${policy.id}`)
  note('policy', checkStanding(standing, context.now()))
  const token = readToken(text)
  note('token', isRefusal(token) ? token : undefined)
  if (!isRefusal(token)) {
    const isOfIssuer = token.issuer === standing.issuer.issuerUrl
    note(
      'issuer',
      isOfIssuer ? undefined : refuse('issuer_mismatch', describeMismatch(token.issuer, standing.issuer.issuerUrl)),
    )
    if (isOfIssuer) await noteSignature(context, standing.issuer, token, text, note)
    note('times', checkTimes(token.payload, context.now(), standing.issuer))
    note('lengths', checkLengths(token))
    for (const step of ['subject', 'audience', 'scopes', 'token_type', 'condition'] as const)
      note(step, rules[step](policy, token))
    // Another issuer's token cannot have been exchanged here.
    if (policy.replayProtection && isOfIssuer) note('replay', await checkReplay(context, standing.issuer.id, token))
  }
  const { compiledCondition } = policy
  const showsCondition = typeof compiledCondition === 'object' && !isRefusal(token)
  return {
    policy_id: policy.id,
    policy_name: policy.name,
    accepted: steps.every(({ ok }) => ok),
    steps,
    ...(showsCondition ? { condition: explainParts(compiledCondition, token) } : {}),
  }
}

/** The whole payload, which `claims` by itself is, would only hide the parts that decide. */
function explainParts(condition: Condition, token: SubjectToken): SubExpression[] {
  return explainCondition(condition, token).filter(({ source }) => source !== 'claims')
}

/** By the database, which has noted a use before the exchange is answered, so that it is the same with and without a server. */
async function checkReplay(
  { orm, now }: AdminContext,
  issuerId: string,
  { payload }: SubjectToken,
): Promise<Refusal | undefined> {
  const tokenIdSha256 = hashTokenId(payload.jti)
  if (tokenIdSha256 === undefined) return refuse('jti_missing')
  const used = await findUsedSubjectToken(orm, issuerId, tokenIdSha256, now())
  return used === undefined ? undefined : refuse('replayed', String(payload.jti))
}

type Note = (step: Step, refusal: Refusal | undefined) => void

async function noteSignature(
  { issuerKeys }: AdminContext,
  issuer: Parameters<AdminContext['issuerKeys']['find']>[0],
  token: SubjectToken,
  text: string,
  note: Note,
): Promise<void> {
  const key = await issuerKeys.find(issuer, token)
  if (isRefusal(key)) {
    note('keys', key)
    return
  }
  note('keys', undefined)
  const isSigned = await isSignedBy(text, token.algorithm, key)
  note('signature', isSigned ? undefined : refuse('signature_invalid', token.kid))
}

function explainedStep(step: Step, refusal: Refusal | undefined): ExplainedStep {
  if (refusal === undefined) return { step, ok: true }
  const { refused: reason, detail } = refusal
  return detail === undefined ? { step, ok: false, reason } : { step, ok: false, reason, detail }
}
