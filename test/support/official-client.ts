// The official client for preset tests: how to create it, how its calls fail, and presets for one test.
import { OpenRouter } from '@openrouter/sdk'

// Removes the credential that the client would add.
delete process.env.OPENROUTER_API_KEY

export const question = { role: 'user' as const, content: 'two words' }

export function officialClient(serverURL: string, apiKey?: string): OpenRouter {
  return new OpenRouter({ serverURL, apiKey, retryConfig: { strategy: 'none' } })
}

/** Returns the error of a rejected call, or undefined. */
export function failureOf(call: PromiseLike<unknown>): PromiseLike<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  )
}

let made = 0
/** Creates a preset and returns its slug. */
export async function createPreset({ presets }: OpenRouter, chatRequest: object = {}): Promise<string> {
  const slug = `preset-${made++}`
  const messages = [{ role: 'system' as const, content: 'Be brief' }]
  await presets.createPresetsChatCompletions({
    slug,
    chatRequest: { model: 'own', temperature: 0.5, messages, ...chatRequest },
  })
  return slug
}
