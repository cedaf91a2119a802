// `latchkey dev`: the whole product on a laptop, with a test issuer and an echo upstream. It prints curl commands to try.
import { join, relative } from 'node:path'
import type { Command } from 'commander'
import { isServed } from '../src/admin/transport/client.ts'
import { Fault } from '../src/fault.ts'
import { raiseOutboundLimit } from '../src/runtime/outbound-limit.ts'
import type { Server } from '../src/server/server.ts'
import { type Config, socketPathFor } from '../src/settings/config.ts'
import { stopOnSignal } from './serve.ts'
import { command, dependencies, givenTo, print, readConfig, runAlone, withSettings } from './shared/command-line.ts'

const defaults = {
  LATCHKEY_DATABASE_URL: 'file:latchkey-dev/latchkey.db',
  LATCHKEY_INSECURE_ISSUERS: 'true',
  LATCHKEY_RATE_LIMIT: '0',
}

type Facts = {
  name: string
  audience: string
  subject: string
  base_url: string
  issuer_url: string
  policy_id: string
  socket: string
  database: string
  upstream: string
  model: string
  admin_url: string | null
}

export function devCommand(): Command {
  const made = command(
    'dev',
    'Try Latchkey on this machine: server, test issuer, echo upstream (unless one is set) and a policy; uses three consecutive ports',
    ['dev', 'dev --listen 127.0.0.1:9000', 'dev --upstream-url http://127.0.0.1:11434/v1'],
  )
  const shown = [
    'LATCHKEY_LISTEN',
    'LATCHKEY_BASE_URL',
    'LATCHKEY_DATABASE_URL',
    'LATCHKEY_UPSTREAM_URL',
    'LATCHKEY_UPSTREAM_API_KEY',
  ] as const
  return withSettings(made, { shown, defaults }).action(async (...all: unknown[]) => {
    raiseOutboundLimit()
    // Every command loads this file, and only this one needs a server.
    const { startServer } = await import('../src/server/server.ts')
    const { demonstration, findModel, prepareDemonstration, startCompanions } = await import('./dev/demonstration.ts')
    const { options } = givenTo(all)
    const given = readConfig(options, defaults)
    const socketPath = socketPathFor(given)
    if (socketPath === undefined)
      throw new Fault('usage', 'dev works on a database file that it creates; set LATCHKEY_DATABASE_URL to file:PATH')
    if (await isServed(socketPath))
      throw new Fault('conflict', 'dev is already running in this folder; stop it first, or use another folder')
    const { issuerUrl, stop, ...upstream } = await startCompanions(given)
    const config: Config = { ...given, ...upstream, insecureIssuers: true }
    let policyId = ''
    const prepare = async (runOperation: Parameters<typeof prepareDemonstration>[0]) => {
      policyId = await prepareDemonstration(runOperation, issuerUrl)
    }
    const server = await startServer(config, dependencies, { create: true, prepare })
    const facts: Facts = {
      ...demonstration,
      base_url: server.baseUrl,
      issuer_url: issuerUrl,
      policy_id: policyId,
      socket: shortest(socketPath),
      database: shortest(config.databasePath),
      upstream: upstream.upstreamUrl,
      model: await findModel(upstream),
      admin_url: await findPageLink(server),
    }
    print(options.json === true ? JSON.stringify(facts) : banner(facts))
    // A terminal that closes sends SIGHUP.
    await stopOnSignal({ stop: () => server.stop().then(stop) }, ['SIGINT', 'SIGTERM', 'SIGHUP'])
  })
}

/** A link that signs in to the admin page. */
async function findPageLink({ pageUrl, runOperation }: Server): Promise<string | null> {
  if (pageUrl === undefined) return null
  const { data } = await runOperation('keys.list', {})
  const key = data.find(({ kind, state }) => kind === 'management' && state === 'enabled')
  return key === undefined ? pageUrl : (await runOperation('sessions.link', { key: key.id })).url
}

function shortest(path: string): string {
  const fromHere = relative('', path)
  return fromHere.startsWith('..') ? path : fromHere
}

/** How the program was called, for commands to paste. */
function programName(): string {
  return import.meta.url.includes('$bunfs')
    ? shortest(process.execPath)
    : `npx --yes bun@1.4.5 ${shortest(join(import.meta.dirname, '../src/main.ts'))}`
}

function banner(facts: Facts): string {
  const { base_url, issuer_url, policy_id, socket, database, upstream, model, subject, audience, admin_url } = facts
  const page =
    admin_url === null
      ? ''
      : `\nAdmin page: ${admin_url}\n  signs in once, within two minutes; after that run: ${programName()} admin open --database-url 'file:${database}'\n`
  return `Latchkey dev serves ${base_url}, with a test issuer at ${issuer_url} and the upstream ${upstream}. Not for production.
${page}
Paste these into another terminal, in this folder:

# 1. Mint a token at the test issuer, with any claims; add ?alg=ES256 for the other key
JWT=$(curl -s '${issuer_url}/mint' -d '{"sub":"${subject}","aud":"${audience}"}')

# 2. Exchange it for an access token
ANSWER=$(curl -s '${base_url}/oauth/token' -d grant_type=urn:ietf:params:oauth:grant-type:token-exchange -d subject_token_type=urn:ietf:params:oauth:token-type:jwt -d federation_policy_id=${policy_id} -d subject_token="$JWT"); echo "$ANSWER"
TOKEN=$(echo "$ANSWER" | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')

# 3. Call inference with it
curl -s '${base_url}/chat/completions' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"model":"${model}","messages":[{"role":"user","content":"Hello from a workload"}]}'; echo

# 4. Create a preset from a request, which callers then name: model, settings and system prompt
echo '{"model":"${model}","temperature":0.2,"messages":[{"role":"system","content":"Answer in two sentences."}]}' | ${programName()} presets save brief - --database-url 'file:${database}'
curl -s '${base_url}/chat/completions' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"model":"@preset/brief","messages":[{"role":"user","content":"Hello by name"}]}'; echo

# 5. See the usage, over the local socket or with the command
curl -s --unix-socket '${socket}' http://localhost/operations/usage.sum -d '{}'; echo
${programName()} usage --requests --database-url 'file:${database}'

# 6. Make an exchange fail: mint for another audience, repeat 2, and compare the response with the audit log
${programName()} audit --database-url 'file:${database}'

Stop with Ctrl+C`
}

if (import.meta.main) await runAlone(devCommand())
