// The helper as a module for programs in JavaScript: a function that returns an access token, for clients that take one.
import { Fault, tellForCommands } from '../fault.ts'
import { type AgentDependencies, exchangeIdentity, type TokenSource } from './access-token.ts'
import { holdToken } from './held-token.ts'
import { type GivenOptions, readSource } from './source-options.ts'
import { thisMachine } from './this-machine.ts'

export type AccessTokenOptions = {
  url?: string
  policy?: string
  identity?: string
  audience?: string
  insecureHttp?: boolean
}

declare const LATCHKEY_VERSION: string | undefined

/**
 * Returns a function that resolves with a valid access token. Options that are absent come from LATCHKEY_URL,
 * LATCHKEY_POLICY, LATCHKEY_IDENTITY and LATCHKEY_AUDIENCE. The token is kept in memory; calls at the same time share one
 * exchange. Throws an error for a wrong option; the function rejects with the server's sentence and what to check.
 */
export function accessToken(options: AccessTokenOptions = {}): () => Promise<string> {
  const { insecureHttp, ...texts } = options
  const version = typeof LATCHKEY_VERSION === 'undefined' ? 'source' : LATCHKEY_VERSION
  const dependencies = { platform: thisMachine, now: Date.now, userAgent: `latchkey-client/${version}` }
  const given = { ...texts, 'insecure-http': insecureHttp === true ? 'true' : undefined }
  const source = readOptions(given, dependencies)
  const held = holdToken({ exchange: () => exchangeIdentity(source, dependencies), now: Date.now })
  return () =>
    held.get().then(
      ({ text }) => text,
      (error: unknown) => {
        throw withHint(error)
      },
    )
}

function readOptions(given: GivenOptions, dependencies: AgentDependencies): TokenSource {
  try {
    return readSource(given, dependencies)
  } catch (error) {
    throw withHint(error)
  }
}

/** Programs show the message of an error alone, so the message says what to check. */
function withHint(error: unknown): unknown {
  return error instanceof Fault ? new Error(tellForCommands(error), { cause: error }) : error
}
