// The preset endpoints as the OpenAPI document describes them.
import { errorResponses, type OperationDoc } from '../http/operation-doc.ts'
import {
  jsonOutermostMembersMax,
  presetBodyBytesMax,
  presetBodyDepthMax,
  presetConfigCharactersMax,
} from '../limits.ts'
import { type } from '../values/shape.ts'
import { type Dialect, dialects, readings } from './preset.ts'
import { designatedPresetResponse, presetResponse, versionResponse } from './responses.ts'
import { presetChanges, presetList, presetPage, presetVersionShape, slugShape } from './shapes.ts'

const segments = {
  slug: slugShape,
  version: presetVersionShape.configure({ says: 'The number of the version' }),
}
/** Newer clients name the workspace, which is always that of the key. */
const workspace = {
  'workspace_id?': type('string').configure({ says: 'The workspace of the key; any other is not found' }),
} as const
export const listQuery = type({ '+': 'reject', ...workspace, ...presetList })
export const pageQuery = type({ '+': 'reject', ...workspace, ...presetPage })
export const workspaceQuery = type({ '+': 'reject', ...workspace })
export const updateBody = type({ '+': 'reject', ...presetChanges }).configure({ minProperties: 1 })
const mediaType = 'application/json'
const designated = {
  description: 'The preset with its designated version',
  shape: type({ data: designatedPresetResponse }),
}

/** Bounds of every JSON body, which must not be empty. */
const membersOfBody = { minProperties: 1, maxProperties: jsonOutermostMembersMax }
const saveRules = `The body is nested at most ${presetBodyDepthMax} levels deep and smaller than ${presetBodyBytesMax} bytes. The stored settings and system prompt have at most ${presetConfigCharactersMax} characters of JSON. The system prompt has no U+0000. A null counts as an absent field, and unknown fields are ignored.`

/** The three requests that create a version (reference: Preset endpoints). */
export const saveDescriptions = Object.fromEntries(
  dialects.map((dialect): [Dialect, OperationDoc] => [
    dialect,
    {
      name: `presetsSaveFrom${dialect[0]?.toUpperCase()}${dialect.slice(1)}`,
      segments,
      summary: `Create a preset, or its next version, from the body of a ${readings[dialect].name} request; fields of a single request are validated but not stored`,
      rules: saveRules,
      access: 'admin:write',
      isConditional: true,
      body: { mediaType, shape: { schema: { ...readings[dialect].body.schema, ...membersOfBody } } },
      responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 408, 409, 412, 413) },
    },
  ]),
) as Record<Dialect, OperationDoc>
export const listDescription: OperationDoc = {
  name: 'presetsList',
  summary: 'List the presets of the workspace that are not archived, most recently updated first',
  access: 'inference',
  query: listQuery,
  responses: {
    200: {
      description: 'The presets, without their versions',
      shape: type({ data: presetResponse.array(), total_count: 'number.integer' }),
    },
    ...errorResponses(400, 401, 404),
  },
}
export const showDescription: OperationDoc = {
  name: 'presetsShow',
  segments,
  summary: 'Show a preset with its designated version',
  access: 'inference',
  query: workspaceQuery,
  responses: { 200: designated, ...errorResponses(400, 401, 404) },
}
export const versionsDescription: OperationDoc = {
  name: 'presetsVersions',
  segments,
  summary: 'List the versions of a preset, oldest first',
  access: 'inference',
  query: pageQuery,
  responses: {
    200: {
      description: 'The versions',
      shape: type({
        data: versionResponse.array(),
        total_count: 'number.integer',
        designated_version: 'number.integer',
      }),
    },
    ...errorResponses(400, 401, 404),
  },
}
export const versionDescription: OperationDoc = {
  name: 'presetsVersion',
  segments,
  summary: 'Show one version of a preset',
  access: 'inference',
  query: workspaceQuery,
  responses: {
    200: { description: 'The version', shape: type({ data: versionResponse }) },
    ...errorResponses(400, 401, 404),
  },
}
export const updateDescription: OperationDoc = {
  name: 'presetsUpdate',
  segments,
  summary: 'Rename or describe a preset, disable or enable it, or designate another version of it',
  rules: 'The designated_version must be a version of the preset.',
  access: 'admin:write',
  query: workspaceQuery,
  isConditional: true,
  body: { mediaType, shape: updateBody },
  responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 408, 409, 412, 413) },
}
export const completeDescription: OperationDoc = {
  name: 'presetsComplete',
  segments,
  summary: 'Show the request that an upstream would get: a body of chat completions, completed with the preset',
  rules:
    'Nothing is sent or stored. The body may name a version in `preset`, such as `support@3`, and no other preset.',
  access: 'inference',
  query: workspaceQuery,
  body: { mediaType, shape: { schema: { type: 'object' } } },
  responses: {
    200: {
      description: 'The completed request',
      shape: type({ data: { preset_version: 'string', target: 'string', body: 'object' } }),
    },
    ...errorResponses(400, 401, 404, 408, 413),
  },
}
export const archiveDescription: OperationDoc = {
  name: 'presetsArchive',
  segments,
  summary: 'Archive a preset: it is hidden until it is restored, and its slug stays taken',
  access: 'admin:write',
  query: workspaceQuery,
  responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 408, 409, 413) },
}
export const restoreDescription: OperationDoc = {
  name: 'presetsRestore',
  segments,
  summary: 'Restore an archived preset unchanged',
  access: 'admin:write',
  query: workspaceQuery,
  responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 408, 409, 413) },
}
