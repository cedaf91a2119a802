// What the endpoints of inference say of themselves, for the OpenAPI document. What goes through is the inference server's own.
import type { Description } from '../http/description.ts'
import { type } from '../shape.ts'

const chatRequest = type({
  'model?': 'string',
  'models?': 'string[]',
  'session_id?': 'string',
  'stream?': 'boolean | null',
  'stream_options?': type({ 'include_usage?': 'boolean' }).or('null'),
})

/** Errors of the inference server pass through as they came, so no status is this service's alone. */
const relayed: Description['responses'] = {
  200: { description: "The inference server's answer", mediaType: '*/*' },
  default: {
    description:
      'An error: in the common shape where it is of this service (400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504), as it came otherwise',
    mediaType: '*/*',
  },
}

export const inferenceDescription: Description = {
  summary: 'Inference, as the inference server offers it under the same path: as JSON or as an event stream',
  access: 'inference',
  body: { mediaType: 'application/json', shape: chatRequest },
  responses: relayed,
}

export const modelDescription: Description = {
  name: 'modelsShow',
  segments: { model: type('string > 0').configure({ says: 'The model, slashes and all' }) },
  summary: 'What the inference server tells of one model',
  access: 'inference',
  responses: relayed,
}

export const modelsDescription: Description = {
  name: 'modelsList',
  summary: "The inference server's list of models",
  access: 'inference',
  responses: relayed,
}
