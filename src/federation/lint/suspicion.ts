// Which rules the facts of a path suspect: by whom it names, and how surely. It builds no examples.
import { isName } from './candidate.ts'
import { type Facts, factsOf } from './fact.ts'
import { certaintyOf, type IssuerKind, isPinnedForever } from './issuer-kind.ts'
import type { RuleName } from './rules.ts'

/** Returns the rule by which a stranger passes, if the facts do not name the tenant. */
export function strangerRuleOf(kind: IssuerKind, shared: boolean, facts: Facts): RuleName | undefined {
  const [tenant] = kind.levels
  if (tenant === undefined && shared) return isSubjectKnown(facts) ? undefined : 'shared-no-tenant'
  if (tenant === undefined) return isIdentified(facts) ? undefined : 'exclusion-only'
  const found = kind.strangerChecks?.find(({ applies }) => applies(facts))
  if (found !== undefined) return found.rule
  const certainty = certaintyOf(tenant, facts)
  if (certainty === 'open') return 'prefix-open'
  if (certainty === 'contained') return 'contains-only'
  if (certainty === 'pinned') return undefined
  if (shared) return 'shared-no-tenant'
  return kind.levels.length > 1 ? 'tenant-wide' : kind.wideRule
}

/**
 * An issuer gives each subject to one account (OpenID Connect Core 1.0 §2). Strangers may choose everything else, also
 * what a condition joins to the subject.
 */
function isSubjectKnown(facts: Facts): boolean {
  const subject = facts.get('sub')
  return subject?.isPiece === false && subject.values?.every(isName) === true
}

/** Nothing is known of the claims, so any of them may be one that strangers cannot choose. */
export function isUndecidable({ levels }: IssuerKind, facts: Facts): boolean {
  return levels.length === 0 && isIdentified(facts)
}

/** Claims that say for what a token is, not for whom. */
const impersonal = ['aud', 'iss', 'token_type', 'typ', 'iat', 'exp', 'nbf']

/** Reports whether some claim must have a name, or contain one, or be a list with such an item. */
function isIdentified(facts: Facts): boolean {
  return [...facts].some(
    ([claim, { values, prefix, suffix, contained, items }]) =>
      !impersonal.includes(claim) &&
      (values?.every(isName) === true ||
        prefix + suffix + contained.join('') !== '' ||
        items.some((item) => isIdentified(factsOf(item) ?? new Map()))),
  )
}

/** Returns the rules about what belongs to a known tenant. */
export function detailRulesOf(kind: IssuerKind, facts: Facts): RuleName[] {
  const rules: RuleName[] = kind.checks.filter(({ applies }) => applies(facts)).map(({ rule }) => rule)
  const within = withinRuleOf(kind, facts)
  if (within !== undefined) rules.push(within)
  if (kind.namesRule !== undefined && !isPinnedForever(kind.levels, facts)) rules.push(kind.namesRule)
  return rules
}

function withinRuleOf({ levels, wideRule }: IssuerKind, facts: Facts): RuleName | undefined {
  const level = levels[1] ?? levels[0]
  if (level === undefined) return isOnlyPartial(facts) ? 'prefix-names' : undefined
  const certainty = certaintyOf(level, facts)
  if (certainty === 'pinned') return undefined
  if (certainty !== 'open') return wideRule
  const prefixes = level.pins.map(({ claim }) => facts.get(claim)?.prefix)
  return prefixes.some(isPartOfName) ? 'prefix-within' : 'prefix-names'
}

function isPartOfName(prefix: string | undefined): boolean {
  return prefix !== undefined && /[\p{L}\p{N}]$/u.test(prefix)
}

/** Reports whether parts of names are all that says who the token is about. */
function isOnlyPartial(facts: Facts): boolean {
  const named = [...facts].filter((entry) => isIdentified(new Map([entry])))
  return named.every(
    ([, { values, prefix, items }]) =>
      values === undefined && items.length === 0 && (prefix === '' || isPartOfName(prefix)),
  )
}
