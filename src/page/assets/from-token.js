// A policy from the claims of a token or of a recorded exchange: what the form of a new policy begins with. The claims stay in the memory of this
// tab until the form has them; the token itself is kept nowhere.
import { answersIn, guessPlatform, rulesOf } from './platforms.js'
import { go } from './router.js'

/** @typedef {{ issuerUrl: string, claims: Record<string, unknown> }} Source */

/** @type {Source | undefined} */
let source

/** Differ in every token, or have another field in the form. */
const notCompared = new Set(['iss', 'aud', 'iat', 'exp', 'nbf', 'jti'])

/** Opens the form of a new policy with it. @param {Source} from */
export function createPolicyFrom(from) {
  source = from
  go(['policies', 'new'], { from: 'token' })
}

/** What the next form begins with, once. */
export function takeSource() {
  const taken = source
  source = undefined
  return taken
}

/** The claims that a condition reads. @param {string} condition */
export function claimsIn(condition) {
  const found = condition.matchAll(/\bclaims(?:\.([A-Za-z_]\w*)|\["([^"]+)"\])/g)
  return [...new Set([...found].map(([, member, quoted]) => member ?? quoted ?? ''))]
}

/** @param {unknown} aud */
const audiencesOf = (aud) => (Array.isArray(aud) ? aud : [aud]).filter((each) => typeof each === 'string')

/**
 * What a policy for these claims has: the rules of its platform where that has all it compares, else the exact subject; and a test that the
 * claims pass.
 * @param {Source} from
 */
export function policyFrom({ issuerUrl, claims }) {
  const platform = guessPlatform(issuerUrl, claims)
  const answers = answersIn(platform, claims)
  const written = rulesOf(platform, answers)
  const isWritten = written.subject !== '' || written.condition !== ''
  const subject = typeof claims.sub === 'string' ? claims.sub : ''
  const rules = isWritten ? written : { subject, condition: '' }
  const read = new Set(['sub', ...claimsIn(rules.condition)])
  const tested = Object.fromEntries(Object.entries(claims).filter(([name]) => read.has(name) && !notCompared.has(name)))
  const [audience] = audiencesOf(claims.aud)
  return {
    platform,
    answers: { [platform]: answers },
    ...rules,
    ...(audience === undefined ? {} : { audience }),
    tests: JSON.stringify([{ name: 'the token that it was made from', claims: tested, expect: 'allow' }], null, 2),
  }
}
