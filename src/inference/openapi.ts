// The OpenAPI documentation of the inference endpoints. Everything that passes through is defined by the inference
// server.
import type { OperationDoc } from '../http/operation-doc.ts'
import { jsonOutermostMembersMax, modelCharactersMax, modelNamesMax } from '../limits.ts'
import { flag, freeObject, matching, object as objectOf } from '../presets/schema/check.ts'
import { models } from '../presets/schema/parameter-shapes.ts'
import { type InferencePath, inferencePaths } from '../values/inference-paths.ts'
import { markedModelText, presetMarker, presetReferenceText } from '../values/preset-text.ts'
import { type } from '../values/shape.ts'

const { properties, ...object } = objectOf({
  models,
  stream: flag,
  stream_options: freeObject,
  preset: matching(presetReferenceText, 'must be slug or slug@3'),
}).schema
const body = {
  ...object,
  maxProperties: jsonOutermostMembersMax,
  properties: {
    ...properties,
    model: {
      description:
        'A name, or a preset as `@preset/slug`, or both. Values that are not strings are left to the inference server.',
      minLength: 1,
      anyOf: [
        { maxLength: modelCharactersMax, not: { type: 'string', pattern: presetMarker } },
        { pattern: markedModelText.source },
      ],
    },
  },
}
const rules =
  'A preset is named as `slug` or `slug@3`, in one place, and completes the body. No member is named twice, and model, ' +
  'models, stream, stream_options, background and previous_response_id are in lower case. The inference server checks everything else, and its errors ' +
  'pass through. A request with a key or token that is limited to models names models in at most ' +
  `${modelNamesMax} places, and no member of any object twice.`

/** Errors of the inference server pass through unchanged, so every status can be either's. */
const relayed: OperationDoc['responses'] = {
  200: { description: "The inference server's response", mediaType: '*/*' },
  default: {
    description:
      'An error: in the common shape when this service reports it (400, 401, 402, 403, 404, 408, 413, 415, 429, 500, ' +
      '502, 503, 504), unchanged when the inference server does',
    mediaType: '*/*',
  },
}

const form = {
  type: 'object',
  properties: {
    model: { type: 'string', minLength: 1, maxLength: modelCharactersMax, not: { pattern: presetMarker } },
    file: { type: 'string', contentMediaType: 'application/octet-stream' },
  },
}
const formRules =
  'Send model before the file. No field model is sent twice, names have letters, digits and ._-[], and presets do not ' +
  'apply. The inference server checks everything else, and its errors pass through. A large file passes on as it arrives.'

const ofBody: Record<InferencePath['body'], Pick<OperationDoc, 'summary' | 'rules' | 'body' | 'segments'>> = {
  json: {
    summary: 'Run inference: the same path on the inference server, as JSON or as an event stream',
    rules,
    body: { mediaType: 'application/json', shape: { schema: body } },
  },
  form: {
    summary: 'Run inference on a file: the same path on the inference server',
    rules: formRules,
    body: { mediaType: 'multipart/form-data', shape: { schema: form } },
  },
  none: {
    summary: 'Use a stored response: the same path on the inference server that has it',
    rules: 'Only the key that made a response can use it.',
    segments: { response: type('string > 0').configure({ says: 'The id of the response' }) },
  },
}

/** By method and path. */
export const inferenceDescriptions: ReadonlyMap<string, OperationDoc> = new Map(
  (Object.entries(inferencePaths) as [string, InferencePath][]).map(
    ([name, { method, endpoint, body, ofResponse }]) => [
      `${method} ${endpoint}`,
      { ...ofBody[body], ...(ofResponse ? { name } : {}), access: 'inference', responses: relayed },
    ],
  ),
)

export const modelDescription: OperationDoc = {
  name: 'modelsShow',
  segments: { model: type('string > 0').configure({ says: 'The model; it may contain slashes' }) },
  summary: 'Show one model, as the inference servers list it',
  access: 'inference',
  responses: relayed,
}

export const modelsDescription: OperationDoc = {
  name: 'modelsList',
  summary: 'List the models of the inference servers, and the presets',
  access: 'inference',
  responses: relayed,
}
