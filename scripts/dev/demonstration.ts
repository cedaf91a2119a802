// The demonstration of `dev`: a test issuer and an upstream next to the server, and a matching key, issuer and policy in a separate database.

import type { RunOperation } from '../../src/admin/operations.ts'
import { Fault } from '../../src/fault.ts'
import { upstreamListMillisecondsMax } from '../../src/limits.ts'
import { type Listener, listen } from '../../src/runtime/listen.ts'
import { outboundFetch } from '../../src/runtime/outbound.ts'
import { formatAddress } from '../../src/settings/addresses.ts'
import type { Config } from '../../src/settings/config.ts'
import { createEchoUpstream } from './echo-upstream.ts'
import { createTestIssuer } from './test-issuer.ts'

export const demonstration = { name: 'dev', audience: 'latchkey', subject: 'my-workload' }

/** The user of the first key; it marks a database that dev created. */
const user = 'latchkey dev'
const loopback = '127.0.0.1'

/** A model of the upstream, for the commands that dev prints. */
export async function findModel({
  upstreamUrl,
  upstreamApiKey,
}: Pick<Companions, 'upstreamUrl' | 'upstreamApiKey'>): Promise<string> {
  const headers: Record<string, string> =
    upstreamApiKey === undefined ? {} : { authorization: `Bearer ${upstreamApiKey}` }
  try {
    const response = await outboundFetch(`${upstreamUrl}/models`, {
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(upstreamListMillisecondsMax),
    })
    const { data } = (await response.json()) as { data: { id: unknown }[] }
    const [model] = data.map(({ id }) => id).filter((id) => typeof id === 'string' && /^[\w./:@-]+$/.test(id))
    return String(model ?? unknownModel)
  } catch {
    return unknownModel
  }
}
const unknownModel = 'your-model'

export type Companions = {
  issuerUrl: string
  upstreamUrl: string
  upstreamApiKey: string | undefined
  stop: () => Promise<void>
}

/** Starts the issuer and, unless the settings name an upstream, the echo upstream, on the two loopback ports after the server's. */
export async function startCompanions({ listen: { port }, upstreamUrl, upstreamApiKey }: Config): Promise<Companions> {
  const listeners: Listener[] = []
  const start = async (step: number, handler: Parameters<typeof listen>[1]) => {
    const listener = await listen({ hostname: loopback, port: port === 0 ? 0 : port + step }, handler)
    listeners.push(listener)
    return `http://${formatAddress({ hostname: loopback, port: listener.port })}`
  }
  let issuerUrl = ''
  issuerUrl = await start(1, await createTestIssuer(() => issuerUrl))
  const stop = async () => {
    await Promise.all(listeners.map((listener) => listener.drain()))
  }
  if (upstreamUrl !== undefined) return { issuerUrl, upstreamUrl, upstreamApiKey, stop }
  const echoApiKey = crypto.randomUUID()
  return {
    issuerUrl,
    upstreamUrl: `${await start(2, createEchoUpstream(echoApiKey))}/v1`,
    upstreamApiKey: echoApiKey,
    stop,
  }
}

/**
 * Finds or creates the key, issuer and policy of the demonstration, and returns the id of the policy.
 * @throws Fault `configuration` for a database that dev did not create: the test issuer signs anything for anyone on this machine
 */
export async function prepareDemonstration(runOperation: RunOperation, issuerUrl: string): Promise<string> {
  const has = async (operation: 'keys.list' | 'issuers.list' | 'policies.list') => {
    const rows: { name: string }[] = (await runOperation(operation, {})).data
    return rows.some(({ name }) => name === demonstration.name)
  }
  const { data: organizations } = await runOperation('organizations.list', {})
  if (organizations.length === 0) await runOperation('init', { owner: user })
  const { data: keys } = await runOperation('keys.list', {})
  if (!keys.some((key) => key.owner === user)) {
    throw new Fault(
      'configuration',
      'This database was not created by dev, which would make it trust its test issuer; leave LATCHKEY_DATABASE_URL unset for dev',
    )
  }
  const { name, audience, subject } = demonstration
  if (!(await has('keys.list'))) await runOperation('keys.create', { name })
  if (await has('issuers.list')) await runOperation('issuers.update', { issuer: name, issuer_url: issuerUrl })
  else await runOperation('issuers.add', { name, issuer_url: issuerUrl })
  if (!(await has('policies.list')))
    await runOperation('policies.create', { name, issuer: name, key: name, audience, subject })
  const { id } = await runOperation('policies.show', { policy: name })
  return id
}
