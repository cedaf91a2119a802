// The messages of a chat body: five roles (reference: Preset parameters), their content as text or parts, and the system prompt in them.
import { integer, list, named, object, oneOf, refine, type Shape, text, textOr, variants } from './check.ts'
import { isObject } from './fields.ts'
import { cacheControl, effort } from './parameter-shapes.ts'

const video = {
  video_url: { required: object({ url: { required: text() }, processing: oneOf('agentic', 'static') }) },
} satisfies Shape

const textPart = {
  text: { required: text() },
  cache_control: cacheControl,
  prompt_cache_breakpoint: object({ mode: { required: oneOf('explicit') } }),
} satisfies Shape

const partShapes = {
  text: textPart,
  image_url: {
    image_url: { required: object({ url: { required: text() }, detail: oneOf('auto', 'low', 'high', 'original') }) },
  },
  input_audio: {
    input_audio: { required: object({ data: { required: text() }, format: { required: text() } }) },
  },
  video_url: video,
  /** The older name of a video part; its member is still called `video_url`. */
  input_video: video,
  file: { file: { required: object({ file_data: text(), file_id: text(), filename: text() }) } },
} satisfies Record<string, Shape>

const content = textOr(list(variants('type', partShapes)), 'a list of parts')
const textContent = textOr(list(variants('type', { text: textPart })), 'a list of text parts')

const reasoningDetail = { id: text(), format: text(), index: integer() } satisfies Shape
const reasoningDetails = list(
  variants('type', {
    'reasoning.encrypted': { ...reasoningDetail, data: { required: text() } },
    'reasoning.summary': { ...reasoningDetail, summary: { required: text() } },
    'reasoning.text': { ...reasoningDetail, text: text(), signature: text() },
    'reasoning.server_tool_call': {
      ...reasoningDetail,
      arguments: { required: text() },
      result: { required: text() },
      tool_name: { required: text() },
      tool_call_id: text(),
    },
  }),
)

const toolCall = object({
  id: { required: text() },
  type: { required: oneOf('function') },
  function: { required: object({ name: { required: text() }, arguments: { required: text() } }) },
})

const instruction = {
  content: { required: textContent },
  name: text(),
  configuration_update: object({ reasoning: { required: object({ effort: { required: effort } }) } }),
} satisfies Shape

export const messageShapes = {
  system: instruction,
  developer: instruction,
  user: { content: { required: content }, name: text() },
  assistant: {
    content,
    name: text(),
    model: text(),
    refusal: text(),
    reasoning: text(),
    reasoning_details: reasoningDetails,
    tool_calls: list(toolCall),
    audio: object({ id: text(), data: text(), transcript: text(), expires_at: integer() }),
    images: list(object({ image_url: { required: object({ url: { required: text() } }) } })),
  },
  tool: { content: { required: content }, tool_call_id: { required: text() } },
} satisfies Record<string, Shape>

export const messages = list(named('ChatMessage', variants('role', messageShapes)), { min: 1 })

/** Token ids or texts, as in completions and embeddings. A chat body has neither; both belong to a single request. */
export const textOrList = refine(
  (value) => typeof value === 'string' || Array.isArray(value),
  'must be text or a list',
  {
    type: ['string', 'array'],
  },
)

/** Whether a message is a system message, under either name of the role. */
export function isInstruction(message: unknown): boolean {
  return isObject(message) && (message.role === 'system' || message.role === 'developer')
}

/** The texts of a message content: the content itself, or its text parts in order. */
export function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (!Array.isArray(value)) return []
  return value
    .filter((part) => isObject(part) && part.type === 'text' && typeof part.text === 'string')
    .map(({ text }) => text)
}
