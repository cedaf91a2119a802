// `latchkey token`: prints an access token for this workload, for programs that run a command to get their credential.
import type { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { findAccessToken, tokenSource } from '../src/agent/access-token.ts'
import { identityForms, parseIdentity } from '../src/agent/identity.ts'
import { thisMachine } from '../src/agent/this-machine.ts'
import { Fault } from '../src/fault.ts'
import { command, givenTo, print, runAlone, withSettings } from './shared/command-line.ts'

export function tokenCommand(): Command {
  const made = command('token', 'Print an access token for this workload', [
    'token',
    'token --url https://llm.example.com/v1 --policy 03e6381f-4326-41a0-b1a5-e93afff92aa9 --identity file:/run/jwt',
    'token --force --json',
  ])
    .option('--url <url>', 'base URL of the server (LATCHKEY_URL)')
    .option('--policy <id>', 'id of the policy (LATCHKEY_POLICY)')
    .option('--identity <identity>', `where the JWT is: ${identityForms} (LATCHKEY_IDENTITY; default: detected)`)
    .option('--audience <audience>', 'audience of the JWT (LATCHKEY_AUDIENCE; default: the origin of the URL)')
    .option('--force', 'exchange even if a cached token is still valid, for example after a 401')
    .option('--insecure-http', 'allow an http:// URL of a different machine; for tests only')
    .addHelpText(
      'after',
      `
The token is cached for this user in $XDG_RUNTIME_DIR and renewed when less than two minutes are left. On failure, the
command prints nothing on standard output. "latchkey help workloads" shows how to use it with clients.`,
    )
  return withSettings(made, { shown: [] }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const { environment } = thisMachine
    const given = (name: string): string => String(options[name] ?? environment[`LATCHKEY_${name.toUpperCase()}`] ?? '')
    const identity = given('identity')
    const source = tokenSource(
      {
        url: required(given('url'), 'url', 'the base URL of the server, for example https://llm.example.com/v1'),
        policy: required(given('policy'), 'policy', 'the id of the policy'),
        identity: identity === '' ? undefined : parseIdentity(identity),
        audience: given('audience'),
        allowsHttp: options.insecureHttp === true,
      },
      thisMachine,
    )
    const userAgent = `latchkey-agent/${packageJson.version}`
    const token = await findAccessToken(
      source,
      { force: options.force === true },
      { platform: thisMachine, now: Date.now, userAgent },
    )
    const expiresAt = new Date(token.expiresAt).toISOString()
    print(
      options.json === true ? JSON.stringify({ access_token: token.text, expires_at: expiresAt }, null, 2) : token.text,
    )
  })
}

function required(text: string, name: string, value: string): string {
  if (text !== '') return text
  throw new Fault('usage', `LATCHKEY_${name.toUpperCase()} is not set: set it, or --${name}, to ${value}`)
}

if (import.meta.main) await runAlone(tokenCommand())
