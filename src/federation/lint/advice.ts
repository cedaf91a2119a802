// Findings that need no example: claims and values that the issuer does not send, the audience, and the age of tokens.
import { type ClaimName, membersOf, type Paths } from './atom.ts'
import { valueAt } from './candidate.ts'
import type { IssuerKind } from './issuer-kind.ts'
import type { RuleName } from './rules.ts'
import type { LintedIssuer, LintedPolicy, Witness } from './witness.ts'

type Advice = { rule: RuleName; detail: string }
type Subject = { policy: LintedPolicy; issuer: LintedIssuer; kind: IssuerKind; paths: Paths; stranger: Witness }

/** Claims of any issuer. */
const common = ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'scopes', 'scope', 'token_type']

const claimsShownMax = 5

/** Returns what to know about a policy in addition to who passes. */
export function findAdvice({ policy, issuer, kind, paths, stranger }: Subject): Advice[] {
  const advice: Advice[] = []
  const add = (rule: RuleName, claims: readonly ClaimName[]): void => {
    const shown = claims.slice(0, claimsShownMax).map((claim) => membersOf(claim).join('.'))
    if (claims.length > shown.length) shown.push(`and ${claims.length - shown.length} more`)
    if (claims.length > 0) advice.push({ rule, detail: shown.join(', ') })
  }
  const claims = claimsIn(paths)
  const isUnknown = (claim: ClaimName) => !isKnown(membersOf(claim)[0] ?? '', kind, stranger)
  add('unknown-claim', claims.filter(isUnknown))
  add(
    'always-error',
    claims.filter((claim) => isExclusionWithoutQuestion(claim, kind, paths, stranger)),
  )
  if (kind.defaultAudience?.test(policy.audience) === true)
    advice.push({ rule: 'default-audience', detail: policy.audience })
  if (kind.hasLongTokens === true && issuer.maxTokenAgeSeconds === null)
    advice.push({ rule: 'long-token', detail: kind.title })
  return advice
}

/** Returns the claims that paths read. */
export function claimsIn(paths: Paths): ClaimName[] {
  const claims = new Set<ClaimName>()
  for (const path of paths) for (const atom of path.values()) if (atom.kind !== 'opaque') claims.add(atom.claim)
  return [...claims].toSorted()
}

function isKnown(name: string, { sometimes, alsoKnown }: IssuerKind, stranger: Witness): boolean {
  return (
    common.includes(name) || Object.hasOwn(stranger, name) || sometimes.includes(name) || alsoKnown?.test(name) === true
  )
}

/** A claim that some tokens lack is excluded, and nowhere is asked whether the token has it. */
function isExclusionWithoutQuestion(
  claim: ClaimName,
  { sometimes }: IssuerKind,
  paths: Paths,
  stranger: Witness,
): boolean {
  if (!sometimes.includes(claim) || valueAt(stranger, claim) !== undefined) return false
  const atoms = paths.flatMap((path) => [...path.values()]).filter((atom) => atom.kind !== 'opaque')
  const ofClaim = atoms.filter((atom) => atom.claim === claim)
  return ofClaim.some((atom) => 'negated' in atom && atom.negated) && !ofClaim.some(({ kind }) => kind === 'present')
}
