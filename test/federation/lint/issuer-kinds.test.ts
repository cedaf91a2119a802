// An issuer is recognized by its URL, or else by the subjects of a policy.
import { expect, test } from 'bun:test'
import { issuerKinds, kindOf } from '../../../src/federation/lint/issuer-kinds.ts'
import { isShared, knownServiceOf } from '../../../src/federation/lint/shared-issuer.ts'

const tenant = '72f988bf-86f1-41af-91ab-2d7cd011db47'

test.each([
  ['https://token.actions.githubusercontent.com', 'github', true],
  // An enterprise can have its own issuer on github.com.
  ['https://token.actions.githubusercontent.com/acme', 'github', false],
  ['https://token.actions.acme.ghe.com', 'github', false],
  ['https://github.acme.example/_services/token', 'github', undefined],
  ['https://gitlab.com', 'gitlab-com', true],
  ['https://gitlab.acme.example', 'gitlab', undefined],
  ['https://accounts.google.com', 'google', true],
  [`https://login.microsoftonline.com/${tenant}/v2.0`, 'azure', false],
  [`https://sts.windows.net/${tenant}/`, 'azure', false],
  ['https://login.microsoftonline.com/common/v2.0', 'azure', true],
  ['https://login.microsoftonline.com/organizations/v2.0', 'azure', true],
  [`https://login.microsoftonline.com/tfp/${tenant}/b2c_1_signup/v2.0/`, 'azure', undefined],
  [`https://login.microsoftonline.com/te/${tenant}/b2c_1_x/v2.0`, 'azure', undefined],
  [`https://login.microsoftonline.com/${tenant}/b2c_1_x/v2.0`, 'azure', undefined],
  ['https://login.microsoftonline.com/acme.onmicrosoft.com/v2.0', 'azure', undefined],
  ['https://agent.buildkite.com', 'buildkite', true],
  [`https://oidc.circleci.com/org/${tenant}`, 'circleci', false],
  ['https://app.terraform.io', 'terraform', true],
  ['https://app.eu.terraform.io', 'terraform', true],
  ['https://api.bitbucket.org/2.0/workspaces/acme/pipelines-config/identity/oidc', 'bitbucket', false],
  ['https://jenkins.acme.example/oidc', 'jenkins', undefined],
  ['https://ci.acme.example/jenkins/oidc', 'jenkins', undefined],
  ['https://kubernetes.default.svc.cluster.local', 'kubernetes', false],
  ['https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE', 'kubernetes', false],
  ['https://container.googleapis.com/v1/projects/p/locations/l/clusters/c', 'kubernetes', false],
  ['https://eastus.oic.prod-aks.azure.com/tenant/cluster/', 'kubernetes', false],
  ['https://oidc.prod-aks.azure.com/0c5f6e2a-0000-4000-8000-000000000001/', 'kubernetes', false],
  ['https://oidc.circleci.com', 'circleci-root', true],
  ['https://gitlab.gnome.org', 'gitlab', true],
  ['https://salsa.debian.org/', 'gitlab', true],
  ['https://invent.kde.org', 'gitlab', true],
  ['https://gitlab.freedesktop.org', 'gitlab', true],
  ['https://framagit.org', 'gitlab', true],
  ['https://salsa.debian.org.evil.example', 'private', undefined],
  ['https://oidc.vercel.com', 'vercel', true],
  ['https://oidc.vercel.com/acme', 'vercel', false],
  ['https://api.pulumi.com/oidc', 'pulumi', true],
  ['https://api.pulumi.com/oidc/v2', 'pulumi-ids', true],
  ['https://oauth2.sigstore.dev/auth', 'sigstore', true],
  ['https://cognito-identity.amazonaws.com', 'cognito', true],
  // A user pool is of one account, which decides who can sign up.
  ['https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEf', 'private', undefined],
  ['https://oidc.codefresh.io', 'codefresh', true],
  ['https://identity.depot.dev', 'depot', true],
  ['https://oidc.modal.com', 'modal', true],
  ['https://codeberg.org/api/actions', 'codeberg', true],
  ['https://git.acme.example/api/actions', 'private', undefined],
  ['https://issuer.enforce.dev', 'public-service', true],
  ['https://0c5f6e2a-0000-4000-8000-000000000001.tokens.sts.global.api.aws', 'private', false],
  ['https://oidc.fly.io/acme', 'private', false],
  ['https://oidc.fly.io', 'private', undefined],
  ['https://acme.app.spacelift.io', 'private', false],
  ['https://acme.app.us.spacelift.io', 'private', false],
  ['https://vstoken.dev.azure.com/0c5f6e2a-0000-4000-8000-000000000001', 'private', false],
  ['https://app.harness.io/ng/api/oidc/account/acme', 'private', false],
  ['https://idtoken.humanitec.io', 'humanitec', true],
  ['https://federation.namespaceapis.com', 'namespace', true],
  ['https://token.actions.githubusercontent.com.evil.example', 'private', undefined],
  ['https://evil.example/https://gitlab.com', 'private', undefined],
  ['https://sso.acme.example/realms/acme', 'private', undefined],
])('%s is %s', (issuerUrl, id, known) => {
  expect(kindOf(issuerUrl, []).id).toBe(id)
  expect(isShared({ issuerUrl, shared: null })).toBe(known)
  // A service that everybody uses stays one, whatever was answered.
  expect(isShared({ issuerUrl, shared: false })).toBe(known === true)
  expect(isShared({ issuerUrl, shared: true })).toBe(true)
  expect(knownServiceOf(issuerUrl) !== undefined).toBe(known === true)
})

test.each([
  ...['localhost:4444', '127.0.0.1', '[::1]:8443', '10.1.2.3', '172.31.0.1', '192.168.1.5:8443', '100.64.0.1'],
  ...['[fd00::1]', 'sso', 'sso.localhost', 'sso.local', 'SSO.Corp.Internal', 'sso.local.', 'sso.home.arpa', 'sso.test'],
  ...['kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'sso.auth.svc', 'sso.auth.svc.cluster.local'],
])('nobody is asked about the host %s, which is not public', (host) => {
  const issuerUrl = `https://${host}/realms/acme`
  expect(isShared({ issuerUrl, shared: null })).toBe(false)
  expect(isShared({ issuerUrl, shared: true })).toBe(true)
})

test.each([
  ...['sso.acme.example', '1.1.1.1', '172.32.0.1', '[2606:4700::1111]', 'local.acme.com', 'internal.com'],
  ...['sso.locals', 'sso.xlocal', 'sso.svc.acme.com', '10.1.2.3.nip.io', 'kubernetes.default.svcx.com'],
])('somebody is asked about the host %s', (host) => {
  expect(isShared({ issuerUrl: `https://${host}/realms/acme`, shared: null })).toBeUndefined()
})

test.each([
  ['system:serviceaccount:ml:batch', 'kubernetes'],
  ['spiffe://acme.example/ns/ml', 'spiffe'],
  ['project_path:acme/app:ref_type:branch:ref:main', 'gitlab'],
  ['organization:acme:project:infra:workspace:prod:run_phase:apply', 'terraform'],
  ['my-workload', 'private'],
])('an unknown issuer with the subject %s is %s', (subject, id) => {
  expect(kindOf('https://issuer.acme.example', [subject]).id).toBe(id)
  expect(kindOf('https://accounts.google.com', [subject]).id).toBe('google')
})

test('every kind has a different id, and an example of a subject that it can send', () => {
  expect(new Set(issuerKinds.map(({ id }) => id)).size).toBe(issuerKinds.length)
  for (const { stranger } of issuerKinds) expect(typeof stranger.sub).toBe('string')
})
