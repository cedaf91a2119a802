// What the endpoints of inference say of themselves, for the OpenAPI document. What goes through is the inference server's own.
import type { OperationDoc } from '../http/operation-doc.ts'
import { jsonOutermostMembersMax, modelCharactersMax, modelNamesMax } from '../limits.ts'
import { flag, freeObject, matching, object as objectOf } from '../presets/schema/check.ts'
import { models } from '../presets/schema/parameter-shapes.ts'
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
      description: 'A name, or a preset as `@preset/slug`, or both. What is not text is left to the inference server.',
      minLength: 1,
      anyOf: [
        { maxLength: modelCharactersMax, not: { type: 'string', pattern: presetMarker } },
        { pattern: markedModelText.source },
      ],
    },
  },
}
const rules =
  'A preset is named as `slug` or `slug@3`, in one place, and completes the body. No member is named twice, and model, models, stream and stream_options are in lower case. Everything else is for the inference server to judge, whose errors pass through. ' +
  `A key or token with bounds on models names models at no more than ${modelNamesMax} places, and no member of any object twice.`

/** Errors of the inference server pass through as they came, so no status is this service's alone. */
const relayed: OperationDoc['responses'] = {
  200: { description: "The inference server's answer", mediaType: '*/*' },
  default: {
    description:
      'An error: in the common shape where it is of this service (400, 401, 402, 403, 404, 408, 413, 415, 429, 500, 502, 503, 504), as it came otherwise',
    mediaType: '*/*',
  },
}

export const inferenceDescription: OperationDoc = {
  summary: 'Inference, as the inference server offers it under the same path: as JSON or as an event stream',
  access: 'inference',
  rules,
  body: { mediaType: 'application/json', shape: { schema: body } },
  responses: relayed,
}

export const modelDescription: OperationDoc = {
  name: 'modelsShow',
  segments: { model: type('string > 0').configure({ says: 'The model, slashes and all' }) },
  summary: 'One model as the inference servers list it',
  access: 'inference',
  responses: relayed,
}

export const modelsDescription: OperationDoc = {
  name: 'modelsList',
  summary: "The inference server's list of models",
  access: 'inference',
  responses: relayed,
}
