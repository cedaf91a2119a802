// The environment of a program whose API clients are to use Latchkey: what each client reads, and what it appends.
import { proxyVariables } from '../runtime/direct-hosts.ts'
import type { Environment } from './identity.ts'

const prefix = '/v1'

/**
 * Returns the environment with the variables that clients of OpenAI, Anthropic and OpenRouter read. `url` is the base URL
 * that ends in `/v1`; the clients of Anthropic append `/v1/messages` to theirs (@anthropic-ai/sdk, Claude Code).
 */
export function clientEnvironment(inherited: Environment, { url, key }: { url: string; key: string }): Environment {
  const anthropicUrl = url.endsWith(prefix) ? url.slice(0, -prefix.length) : url
  return {
    ...inherited,
    OPENAI_BASE_URL: url,
    OPENAI_API_KEY: key,
    ANTHROPIC_BASE_URL: anthropicUrl,
    ANTHROPIC_AUTH_TOKEN: key,
    // Claude Code would use it in place of the token, and send it along.
    ANTHROPIC_API_KEY: undefined,
    OPENROUTER_BASE_URL: url,
    OPENROUTER_API_KEY: key,
  }
}

/**
 * Returns the environment with this machine excluded from the proxy, where one is set. Clients differ in what they
 * understand, so these are names and addresses only.
 */
export function withoutLocalProxy(inherited: Environment): Environment {
  if (!proxyVariables.some((name) => (inherited[name] ?? '') !== '')) return inherited
  const given = new Set([inherited.NO_PROXY ?? '', inherited.no_proxy ?? ''])
  const names = [...given, '127.0.0.1', 'localhost', '::1'].filter((name) => name !== '')
  return { ...inherited, NO_PROXY: names.join(','), no_proxy: names.join(',') }
}
