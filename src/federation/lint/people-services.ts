// Services that sign everybody in, with one issuer for all. Each names its source.
import { claimAt } from './atom.ts'
import type { IssuerKind, Level, Pin } from './issuer-kind.ts'
import { mailDomainCheck, namesProject } from './mail-domains.ts'
import { ids, serviceOf } from './public-service.ts'

/** Ids of GitHub's users never pass to others. */
const gitHubUser: Pin = {
  claim: claimAt('federated_claims', 'user_id'),
  immutable: true,
  beside: { claim: claimAt('federated_claims', 'connector_id'), value: /^https:\/\/github\.com\/login\/oauth$/ },
}
const person: Pin[] = [...ids('sub'), gitHubUser, { claim: 'email' }]
const sigstoreTenant: Level = { pins: [...person, { claim: 'email', suffix: { test: namesProject } }] }
/** Accounts of GitHub, Google and Microsoft: https://github.com/sigstore/fulcio/blob/main/docs/oidc.md */
export const sigstore: IssuerKind = {
  ...serviceOf({
    id: 'sigstore',
    title: 'Sigstore',
    issuers: /^https:\/\/oauth2\.sigstore\.dev\/auth\/?$/,
    levels: [sigstoreTenant, { pins: person }],
    stranger: {
      sub: 'CgkwMDAwMDAwMDESBm1hbGxvcnk',
      email: 'mallory@example.net',
      email_verified: true,
      federated_claims: { connector_id: 'https://github.com/login/oauth', user_id: '900000003' },
    },
  }),
  strangerChecks: [mailDomainCheck(sigstoreTenant)],
}

const cognitoIdentity = 'us-east-1:90000000-0000-4000-8000-000000000001'
/** A provider of one's own account: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html */
const ownProvider = /^arn:aws[a-z-]*:iam::\d{12}:(?:oidc|saml)-provider\/./
/**
 * Anyone can create a pool. The audience is always the id of the pool, and in the pages of its clients. Of the logins that
 * a pool trusts, people can sign up to most (Facebook, Google, a user pool), and all are `authenticated`:
 * https://docs.aws.amazon.com/cognitoidentity/latest/APIReference/API_GetOpenIdToken.html
 */
export const cognito: IssuerKind = {
  ...serviceOf({
    id: 'cognito',
    title: 'Amazon Cognito identity pools',
    issuers: /^https:\/\/cognito-identity\.amazonaws\.com\/?$/,
    levels: [{ pins: ids('sub') }],
    stranger: { sub: cognitoIdentity, amr: ['authenticated'] },
  }),
  ofAudience: {
    audience: /^[a-z]{2}(?:-[a-z]+)+-\d:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/,
    levels: [{ pins: [...ids('sub'), { claim: 'amr', item: ownProvider }] }],
    stranger: { sub: cognitoIdentity, amr: [] },
  },
}

/**
 * Issuers of which only the subject is known to be one account's: those that the public Sigstore instance accepts from
 * everybody (https://github.com/sigstore/fulcio/blob/main/config/identity/config.yaml), and env zero
 * (https://docs.envzero.com/guides/integrations/oidc-integrations/oidc-with-aws).
 */
export const otherService = serviceOf({
  id: 'public-service',
  title: 'a service that everyone can use',
  issuers:
    /^https:\/\/(?:issuer\.(?:enforce\.dev|hello\.coop)|www\.kaggle\.com\/api\/v1\/models\/signing|login\.app\.env0\.com)\/?$/,
  levels: [{ pins: [{ claim: 'sub' }] }],
  stranger: { sub: '0f8fad5b-d9cb-469f-a165-70867728950e', email: 'mallory@example.net', email_verified: true },
})
