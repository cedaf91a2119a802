// Google: accounts of people and service accounts (source: its documentation).
import { claimAt } from './atom.ts'
import type { Facts } from './fact.ts'
import { type IssuerKind, isAsked, isExactly, isPinnedForever, type Level, nothing } from './issuer-kind.ts'
import { mailDomainCheck, namesProject } from './mail-domains.ts'

const engine = (member: string) => claimAt('google', 'compute_engine', member)
const googlePerson: Level = {
  pins: [
    { claim: 'sub', immutable: true, value: /^\d+$/, open: nothing },
    { claim: 'azp', immutable: true, value: /^\d+$/, open: nothing },
    { claim: engine('instance_id'), immutable: true },
    { claim: 'email' },
  ],
}
/**
 * Without `hd`, a verified address of any domain is a personal account, whose owner had the address at some time
 * (https://developers.google.com/identity/gsi/web/guides/verify-google-id-token).
 */
const googleTenant: Level = {
  pins: [
    ...googlePerson.pins,
    { claim: 'hd' },
    { claim: 'email', suffix: { test: namesProject } },
    { claim: engine('project_id') },
    { claim: engine('project_number'), immutable: true },
  ],
}
const isEmailUsed = (facts: Facts) => isAsked(facts, 'email') && !isPinnedForever([googlePerson], facts)
/** Nobody can sign up with the address of a service account. Only Google creates them. */
const serviceAccount = /\.gserviceaccount\.com$/
const isVerified = (facts: Facts) =>
  isExactly(facts, 'email_verified', /^true$/) ||
  isExactly(facts, 'email', serviceAccount) ||
  serviceAccount.test(facts.get('email')?.suffix ?? '')
export const google: IssuerKind = {
  id: 'google',
  title: 'Google',
  matches: (issuerUrl) => /^https:\/\/accounts\.google\.com\/?$/.test(issuerUrl),
  isShared: () => true,
  levels: [googleTenant, googlePerson],
  wideRule: 'tenant-wide',
  strangerChecks: [mailDomainCheck(googleTenant)],
  checks: [
    { rule: 'google-email', applies: (facts) => isEmailUsed(facts) && !isVerified(facts) },
    { rule: 'google-email-only', applies: (facts) => isEmailUsed(facts) && isVerified(facts) },
  ],
  checkedClaims: ['email_verified'],
  stranger: {
    sub: '900000000000000000001',
    azp: '900000000000000000001',
    email: 'mallory@example.net',
    email_verified: false,
  },
  subjects: /^\d+$/,
  sometimes: ['hd', 'google', 'at_hash', 'name', 'picture', 'given_name', 'family_name', 'locale', 'nonce'],
}
