// A server in front of a scripted upstream, with presets saved like an admin saves them, and the bodies that the
// upstream receives.
import type { InferenceEndpoint } from '../../src/values/inference-paths.ts'
import { type Inference, startInference } from './inference.ts'
import type { Row } from './latchkey.ts'

export type Fields = Record<string, unknown>
type Call = { body?: unknown; key?: string }
export type PresetServer = Inference & {
  /** The management key of the default workspace, which `call` sends unless it names another key. */
  management: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever it is, the assertions say what it must be
  call: (method: string, path: string, call?: Call) => Promise<any>
  /** Creates a preset for one test from a chat body and returns its slug. */
  savePreset: (body: Fields, slug?: string) => Promise<string>
  /** Posts a body, as text or fields, with the target key unless another credential is given. */
  infer: (path: string, body: unknown, credential?: string) => Promise<Response>
  /** The requests to the upstream, in order. */
  sent: () => Fields[]
}

/** The fields that each path requires in addition to a model. */
export const bodyOf = {
  '/chat/completions': { messages: [{ role: 'user', content: 'hello' }] },
  '/completions': { prompt: 'hello' },
  '/responses': { input: 'hello' },
  '/messages': { messages: [{ role: 'user', content: 'hello' }] },
  '/embeddings': { input: 'hello' },
  '/rerank': { query: 'hello', documents: ['a', 'b'] },
} as const satisfies Partial<Record<InferenceEndpoint, Fields>>
export type InferencePath = keyof typeof bodyOf
export const inferencePaths = Object.keys(bodyOf) as InferencePath[]

export async function startPresets(): Promise<PresetServer> {
  const inference = await startInference()
  const { admin, server, upstream, key: target } = inference
  const { key: management } = await admin<Row & { key: string }>('keys.create', { name: 'admin', kind: 'management' })
  let made = 0

  const post = (method: string, path: string, credential: string, body: unknown) =>
    fetch(server.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${credential}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    })
  const call: PresetServer['call'] = async (method, path, { body, key = management } = {}) => {
    const response = await post(method, path, key, body)
    return { status: response.status, ...((await response.json()) as Fields) }
  }
  return {
    ...inference,
    management,
    call,
    savePreset: async (body, slug = `preset-${made++}`) => {
      const messages = bodyOf['/chat/completions'].messages
      const { status, error } = await call('POST', `/presets/${slug}/chat/completions`, { body: { messages, ...body } })
      if (status !== 200) throw new Error(`The preset was refused: ${JSON.stringify(error)}`)
      return slug
    },
    infer: (path, body, credential = target.key) => post('POST', path, credential, body),
    sent: () => upstream.requests.map(({ body }) => JSON.parse(body) as Fields),
  }
}
