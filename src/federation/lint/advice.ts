// Findings that need no example: claims and values that the issuer does not send, the audience, and the age of tokens.
import { attributionOf } from '../attribution.ts'
import { claimsReadBy } from '../condition/claims-read.ts'
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
    const names = claims.slice(0, claimsShownMax).map((claim) => membersOf(claim).join('.'))
    if (claims.length > names.length) names.push(`and ${claims.length - names.length} more`)
    if (claims.length > 0) advice.push({ rule, detail: names.join(', ') })
  }
  const claims = claimsIn(paths)
  const isUnknown = (claim: ClaimName) => !isKnown(membersOf(claim)[0] ?? '', kind, stranger)
  add('unknown-claim', claims.filter(isUnknown))
  add(
    'always-error',
    claims.filter((claim) => isExclusionWithoutQuestion(claim, kind, paths, stranger)),
  )
  const foreign = namesIn(paths, kind).filter((text) => /[^\p{ASCII}]/u.test(text))
  if (foreign.length > 0)
    advice.push({ rule: 'look-alike', detail: foreign.slice(0, claimsShownMax).map(shown).join(', ') })
  if (kind.defaultAudience?.test(policy.audience) === true || ofPublicService.test(policy.audience))
    advice.push({ rule: 'default-audience', detail: policy.audience })
  if (kind.hasLongTokens === true && issuer.maxTokenAgeSeconds === null)
    advice.push({ rule: 'long-token', detail: kind.title })
  add('attribution-chosen', chosenIn(policy, kind))
  return advice
}

/** What workloads put into tokens for inference services that exchange tokens too, as their instructions say. */
const ofPublicService = /^https:\/\/(?:api\.(?:anthropic|openai)\.com|openrouter\.ai)(?:\/|$)/

/** Any workload requests the audience that it likes. */
const chosenEverywhere = ['aud']

/** The claims among those that usage is attributed to that the author of a job chooses. */
function chosenIn(
  { attributeTo = null, attributeEnvironment = null }: LintedPolicy,
  { chosenClaims = [] }: IssuerKind,
) {
  const attribution = attributionOf({ attributeTo, attributeEnvironment })
  if (typeof attribution !== 'object') return []
  const { names } = claimsReadBy(attribution.ast)
  return [...chosenClaims, ...chosenEverywhere].filter((claim) => names.has(claim))
}

/** The texts with which claims that name a tenant, or a part of one, are compared. */
function namesIn(paths: Paths, { levels }: IssuerKind): string[] {
  const naming = new Set(levels.flatMap(({ pins }) => pins.map(({ claim }) => claim)))
  const atoms = paths.flatMap((path) => [...path.values()])
  const texts = atoms.flatMap((atom) => {
    if (atom.kind === 'opaque' || !naming.has(atom.claim)) return []
    if (atom.kind === 'text') return [atom.text]
    return atom.kind === 'among' ? atom.values.map(String) : []
  })
  return [...new Set(texts)].toSorted()
}

/** A text with the code points of what looks like something else. */
function shown(text: string): string {
  const code = (character: string) => character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  return text.replaceAll(/[^\p{ASCII}]/gu, (character) => `${character} (U+${code(character)})`)
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
