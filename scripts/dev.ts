// `latchkey dev`: the whole product on a laptop, with a test issuer and an echo upstream, ready for the curl lines it prints.
import { relative } from 'node:path'
import type { Command } from 'commander'
import type { RunOperation } from '../src/admin/operation.ts'
import { type Config, formatAddress, socketPathFor } from '../src/config.ts'
import { createEchoUpstream } from '../src/dev/echo-upstream.ts'
import { createTestIssuer } from '../src/dev/test-issuer.ts'
import { type Handler, type Listener, listen } from '../src/runtime.ts'
import { startServer } from '../src/server.ts'
import { command, givenTo, print, readConfig, runAlone, surroundings, withSettings } from './command-line.ts'
import { stopOnSignal } from './serve.ts'

const loopback = '127.0.0.1'
const names = { key: 'dev', issuer: 'dev', policy: 'dev', audience: 'latchkey', subject: 'my-workload' }

export function devCommand(): Command {
  const made = command(
    'dev',
    'Try the whole product on this machine: server, test issuer, echo upstream, and a policy',
    ['dev', 'dev --listen 127.0.0.1:9000'],
  )
  return withSettings(made, { serves: true }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const given = readConfig(options, { LATCHKEY_DATABASE_URL: 'file:latchkey-dev/latchkey.db' })
    const companions = await startCompanions(given)
    const config: Config = {
      ...given,
      insecureIssuers: true,
      upstreamUrl: companions.upstreamUrl,
      upstreamApiKey: companions.upstreamApiKey,
    }
    const server = await startServer(config, surroundings, { initialize: true })
    const policyId = await seed(server.runOperation, companions.issuerUrl)
    const facts = {
      baseUrl: server.baseUrl,
      issuerUrl: companions.issuerUrl,
      policyId,
      socket: shortest(socketPathFor(config)),
      database: shortest(config.databasePath),
    }
    print(
      options.json === true
        ? JSON.stringify({
            base_url: facts.baseUrl,
            issuer_url: facts.issuerUrl,
            policy_id: policyId,
            socket: facts.socket,
            database: facts.database,
          })
        : banner(facts),
    )
    await stopOnSignal({
      stop: async () => {
        await server.stop()
        await companions.stop()
      },
    })
  })
}

/** The issuer and the upstream, on the two ports after the server's and on this machine only. */
async function startCompanions({ listen: { port } }: Config) {
  const nextPort = (step: number) => (port === 0 ? 0 : port + step)
  const upstreamApiKey = crypto.randomUUID()
  const upstream = await listen({ hostname: loopback, port: nextPort(2) }, createEchoUpstream(upstreamApiKey))
  let issuer: Listener | undefined
  const issuerUrl = () => `http://${formatAddress({ hostname: loopback, port: issuer?.port ?? 0 })}`
  const handler: Handler = await createTestIssuer(issuerUrl)
  issuer = await listen({ hostname: loopback, port: nextPort(1) }, handler)
  const stop = async () => {
    await Promise.all([upstream.drain(), issuer?.drain()])
  }
  return {
    issuerUrl: issuerUrl(),
    upstreamUrl: `http://${formatAddress({ hostname: loopback, port: upstream.port })}/v1`,
    upstreamApiKey,
    stop,
  }
}

/** Finds or makes the key, issuer and policy of the demonstration, so that a second start finds everything in place. Answers the policy's id. */
async function seed(runOperation: RunOperation, issuerUrl: string): Promise<string> {
  const has = async (list: 'keys.list' | 'issuers.list' | 'policies.list', name: string) => {
    const { data } = (await runOperation(list, {})) as { data: { name: string }[] }
    return data.some((row) => row.name === name)
  }
  if (!(await has('keys.list', names.key))) await runOperation('keys.create', { name: names.key })
  if (await has('issuers.list', names.issuer))
    await runOperation('issuers.update', { issuer: names.issuer, issuer_url: issuerUrl })
  else await runOperation('issuers.add', { name: names.issuer, issuer_url: issuerUrl })
  const policy = (await has('policies.list', names.policy))
    ? await runOperation('policies.show', { policy: names.policy })
    : await runOperation('policies.create', {
        name: names.policy,
        issuer: names.issuer,
        key: names.key,
        audience: names.audience,
        subject: names.subject,
      })
  return (policy as { id: string }).id
}

function shortest(path: string): string {
  const fromHere = relative('', path)
  return fromHere.startsWith('..') ? path : fromHere
}

/** How the program was called, for lines that people paste. */
function programName(): string {
  return import.meta.url.includes('$bunfs') ? process.execPath : 'npx --yes bun@1.4.5 src/main.ts'
}

function banner({
  baseUrl,
  issuerUrl,
  policyId,
  socket,
  database,
}: {
  baseUrl: string
  issuerUrl: string
  policyId: string
  socket: string
  database: string
}): string {
  return `Latchkey dev serves ${baseUrl}, with a test issuer at ${issuerUrl} and an echo upstream. Not for production.
Paste these into another terminal, in this folder:

# 1. Mint a token at the test issuer; any claims you like, ?alg=ES256 for the other key
JWT=$(curl -s '${issuerUrl}/mint' -d '{"sub":"${names.subject}","aud":"${names.audience}"}')

# 2. Exchange it for an access token
TOKEN=$(curl -s '${baseUrl}/oauth/token' -d grant_type=urn:ietf:params:oauth:grant-type:token-exchange -d subject_token_type=urn:ietf:params:oauth:token-type:jwt -d federation_policy_id=${policyId} -d subject_token="$JWT" | tee /dev/stderr | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')

# 3. Call inference with it
curl -s '${baseUrl}/chat/completions' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"model":"echo","messages":[{"role":"user","content":"Hello from a workload"}]}'

# 4. See the usage, over the local socket or with the command
curl -s --unix-socket '${socket}' http://localhost/operations/usage.keys -d '{}'
${programName()} usage --requests --database-url 'file:${database}'

Stop with Ctrl+C`
}

if (import.meta.main) await runAlone(devCommand())
