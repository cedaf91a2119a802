// What is known of a request before it runs: how many tokens it will probably take, and what makes two requests like the same server.
import type { Call } from './call.ts'
import type { Upstream } from './upstream/targets.ts'

/** A guess for requests that name no maximum. What a request takes in the end corrects it. */
const completionTokensExpected = 1_024
/** A maximum of a million says little about the response. */
const completionTokensMax = 16_384
const bytesPerToken = 3
/** Of the beginning of a prompt. More would cost time on each request. */
const prefixCharacters = 1_024

/** At least one. What a request takes in the end corrects it. */
export function expectedTokens({ json, fields, path }: Call): number {
  const prompt = (json?.bytes.byteLength ?? 0) / bytesPerToken
  const max = completionTokensAsked(fields)
  const generated = path.generates ? Math.min(completionTokensMax, max ?? completionTokensExpected) : 0
  return Math.max(1, prompt + generated)
}

/** The maximum that a body names, in the words of each dialect. */
export function completionTokensAsked(fields: Call['fields']): number | undefined {
  const { max_completion_tokens: completion, max_tokens: chat, max_output_tokens: responses } = fields
  for (const each of [completion, chat, responses]) if (typeof each === 'number' && each > 0) return each
  return undefined
}

/**
 * Returns what keeps the requests of a session, or with the same beginning, at one of several servers; undefined where these have no
 * affinity, or the request has no session.
 */
export function affinityKeyFor(call: Call, headers: Headers): (upstreams: readonly Upstream[]) => string | undefined {
  return (upstreams) => {
    const affinity = upstreams.find((each) => each.affinity !== 'none')?.affinity
    if (affinity === undefined) return undefined
    const session = call.sessionId ?? headers.get('x-session-id') ?? undefined
    return affinity === 'session' ? session : prefixOf(call)
  }
}

function prefixOf({ fields: { system, instructions, messages, prompt, input } }: Call): string | undefined {
  let prefix = ''
  const waiting: unknown[] = [input, prompt, messages, instructions, system]
  while (waiting.length > 0 && prefix.length < prefixCharacters) {
    const part = waiting.pop()
    if (typeof part === 'string') prefix += `${part.slice(0, prefixCharacters)}\n`
    else if (Array.isArray(part)) waiting.push(...part.slice(0, prefixCharacters).toReversed())
    else if (typeof part === 'object' && part !== null)
      waiting.push((part as { content?: unknown; text?: unknown }).content ?? (part as { text?: unknown }).text)
  }
  return prefix === '' ? undefined : prefix.slice(0, prefixCharacters)
}
