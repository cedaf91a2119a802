// The options that name the server and the identity: their help, and how their values are read.
import { Fault } from '../fault.ts'
import { type AgentDependencies, type TokenSource, tokenSource } from './access-token.ts'
import { detectIdentity, type Environment, identityForms, parseIdentity } from './identity.ts'
import { listLogins } from './login-files.ts'

/** Without `value`, the option is a switch. `former` is the name that it had before, which works for one more release. */
export type AgentOption = { name: string; value?: string; help: string; former?: string }
/** One line for standard error, so that output in JSON stays JSON. */
export function formerNameWarning(former: string, current: string): string {
  return `Warning: ${former} is now ${current}; the next release no longer accepts ${former}`
}

/** The values of options by name, as they were written; a switch that is set is 'true'. */
export type GivenOptions = Readonly<Record<string, string | undefined>>

export const sourceOptions: readonly AgentOption[] = [
  { name: 'url', value: 'url', help: 'base URL of the server (LATCHKEY_URL)' },
  { name: 'policy', value: 'id', help: 'id of the policy (LATCHKEY_POLICY)' },
  {
    name: 'identity',
    value: 'identity',
    help: `where the JWT is: ${identityForms} (LATCHKEY_IDENTITY; default: detected)`,
  },
  {
    name: 'audience',
    value: 'audience',
    help: 'audience of the JWT (LATCHKEY_AUDIENCE; default: the origin of the URL)',
  },
  { name: 'insecure-http', help: 'allow an http:// URL of a different machine; for tests only' },
]

/**
 * Reads the options of `sourceOptions`, each from its flag or else from the environment. A person who has signed in needs to name neither
 * the server nor the policy: the newest login has them. Throws a `usage` fault.
 */
export function readSource(given: GivenOptions, { platform }: AgentDependencies): TokenSource {
  const { environment } = platform
  const read = (name: string): string => given[name] ?? environment[`LATCHKEY_${name.toUpperCase()}`] ?? ''
  const named = { url: read('url').replace(/\/+$/, ''), policy: read('policy') }
  const kind = read('identity')
  const login = kind === '' || kind === 'login' ? findLogin(named, environment) : undefined
  const url = required(named.url || (login?.url ?? ''), 'url', 'the base URL of the server, or run latchkey login URL')
  const policy = required(named.policy || (login?.policy ?? ''), 'policy', 'the id of the policy')
  const identity = kind === '' ? detectIdentity(environment, login) : parseIdentity(kind, { url, policy })
  return tokenSource({
    url,
    policy,
    identity,
    audience: read('audience'),
    allowsHttp: given['insecure-http'] !== undefined,
  })
}

/** The newest login that fits what was named. */
function findLogin({ url, policy }: { url: string; policy: string }, environment: Environment) {
  const found = listLogins(environment).find(
    (login) => (url === '' || login.url === url) && (policy === '' || login.policy === policy),
  )
  return found && { url: found.url, policy: found.policy }
}

function required(text: string, name: string, value: string): string {
  if (text !== '') return text
  throw new Fault('usage', `LATCHKEY_${name.toUpperCase()} is not set: set it, or --${name}, to ${value}`)
}
