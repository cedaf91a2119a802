// What the endpoints of inference say of themselves, for the OpenAPI document. What goes through is the inference server's own.
import { type Description, errorResponses } from '../http/description.ts'
import { type } from '../shape.ts'

const chatRequest = type({
  'model?': 'string',
  'messages?': 'object[]',
  'stream?': 'boolean | null',
  'stream_options?': type({ 'include_usage?': 'boolean' }).or('null'),
})

export const chatDescription: Description = {
  summary: 'A chat completion of the inference server, as JSON or as an event stream',
  access: 'inference',
  body: { mediaType: 'application/json', shape: chatRequest },
  responses: {
    200: { description: "The inference server's answer", mediaType: '*/*' },
    ...errorResponses(400, 401, 403, 408, 413, 502, 503, 504),
  },
}

export const modelsDescription: Description = {
  summary: "The inference server's list of models",
  access: 'inference',
  responses: {
    200: { description: "The inference server's answer", mediaType: '*/*' },
    ...errorResponses(401, 403, 502, 503, 504),
  },
}
