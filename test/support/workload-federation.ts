// A running Latchkey that trusts a real identity provider, with a policy for each workload that may exchange.
import { type IdentityProvider, startIdentityProvider, type Workload } from './identity-provider.ts'
import { type Federation, postExchange, type Row, startFederation, type TestServerOptions } from './latchkey.ts'

export const latchkeyAudience = 'https://latchkey.test'

export type WorkloadFederation = Omit<Federation, 'issuer' | 'issuerUrl' | 'policy' | 'mint' | 'exchange'> & {
  identityProvider: IdentityProvider
  issuer: Row
  /** Policies of every workload except the stranger. */
  policies: Record<Exclude<Workload, 'workload-stranger'>, Row>
  /** A token for Latchkey, unless another audience is given. */
  subjectToken: (workload: Workload, audience?: string) => Promise<string>
  /** Runs the whole path of a workload, from the identity provider to the access token. */
  accessToken: (workload?: Exclude<Workload, 'workload-stranger'>) => Promise<string>
}

/** Adds the issuer by its URL only, so that its keys are found by discovery. */
export async function startWorkloadFederation(options: TestServerOptions = {}): Promise<WorkloadFederation> {
  const identityProvider = await startIdentityProvider()
  const federation = await startFederation(options)
  const { admin, server } = federation
  const issuer = await admin('issuers.add', { name: 'provider', issuer_url: identityProvider.issuerUrl })
  const createPolicy = (subject: Workload) =>
    admin('policies.create', { name: subject, issuer: 'provider', key: 'target', audience: latchkeyAudience, subject })
  const policies = {
    'workload-rs256': await createPolicy('workload-rs256'),
    'workload-es256': await createPolicy('workload-es256'),
    'workload-brief': await createPolicy('workload-brief'),
  }
  const subjectToken = (workload: Workload, audience = latchkeyAudience) =>
    identityProvider.getToken(workload, audience)
  return {
    ...federation,
    identityProvider,
    issuer,
    policies,
    subjectToken,
    accessToken: async (workload = 'workload-rs256') => {
      const fields = { federation_policy_id: policies[workload].id, subject_token: await subjectToken(workload) }
      const { access_token } = (await (await postExchange(server.baseUrl, fields)).json()) as { access_token?: string }
      if (access_token === undefined) throw new Error(`The exchange of ${workload} was refused`)
      return access_token
    },
    stop: async () => {
      await federation.stop()
      await identityProvider.stop()
    },
  }
}
