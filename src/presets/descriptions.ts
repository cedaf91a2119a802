// What the preset endpoints say of themselves, for the OpenAPI document. Bodies are checked by rules of their own (chat-body and the like).
import { type Description, errorResponses } from '../http/description.ts'
import { presetPageRowsMax } from '../limits.ts'
import { type } from '../shape.ts'
import { designatedPresetAnswer, presetAnswer, versionAnswer } from './answers.ts'
import type { Dialect } from './preset.ts'

const slug = 'Its slug: 1 to 128 letters, digits or . _ ~ -'
const segments = { slug, version: 'The number of the version, from 1' }
const query = type({ 'offset?': 'number.integer >= 0', 'limit?': `1 <= number.integer <= ${presetPageRowsMax}` })
const mediaType = 'application/json'
const designated = {
  description: 'The preset with its designated version',
  shape: type({ data: designatedPresetAnswer }),
}

const bodies: Record<Dialect, { from: string; shape: NonNullable<Description['body']>['shape'] }> = {
  chat: {
    from: 'chat completions',
    shape: type({ messages: 'object[] > 0', 'model?': 'string', 'temperature?': '0 <= number <= 2' }),
  },
  messages: { from: 'messages', shape: type({ messages: 'object[]', 'model?': 'string', 'system?': 'unknown' }) },
  responses: {
    from: 'responses',
    shape: type({ 'input?': 'unknown', 'model?': 'string', 'instructions?': 'unknown' }),
  },
}

/** Interface §4.3. */
export const saveDescriptions = Object.fromEntries(
  Object.entries(bodies).map(([dialect, { from, shape }]): [string, Description] => [
    dialect,
    {
      name: `presetsSaveFrom${dialect[0]?.toUpperCase()}${dialect.slice(1)}`,
      segments,
      summary: `Create a preset, or its next version, from the body of a ${from} request; what belongs to one request alone is checked and not kept`,
      access: 'admin:write',
      body: { mediaType, shape },
      responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 408, 409, 413) },
    },
  ]),
) as Record<Dialect, Description>
export const listDescription: Description = {
  name: 'presetsList',
  summary: 'List the presets of the workspace that are not archived, most recently updated first',
  access: 'inference',
  query,
  responses: {
    200: {
      description: 'The presets, without their versions',
      shape: type({ data: presetAnswer.array(), total_count: 'number.integer' }),
    },
    ...errorResponses(400, 401),
  },
}
export const showDescription: Description = {
  name: 'presetsShow',
  segments,
  summary: 'Show a preset with its designated version',
  access: 'inference',
  responses: { 200: designated, ...errorResponses(400, 401, 404) },
}
export const versionsDescription: Description = {
  name: 'presetsVersions',
  segments,
  summary: 'List the versions of a preset, oldest first',
  access: 'inference',
  query,
  responses: {
    200: {
      description: 'The versions',
      shape: type({
        data: versionAnswer.array(),
        total_count: 'number.integer',
        designated_version: 'number.integer',
      }),
    },
    ...errorResponses(400, 401, 404),
  },
}
export const versionDescription: Description = {
  name: 'presetsVersion',
  segments,
  summary: 'Show one version of a preset',
  access: 'inference',
  responses: {
    200: { description: 'The version', shape: type({ data: versionAnswer }) },
    ...errorResponses(400, 401, 404),
  },
}
export const updateDescription: Description = {
  name: 'presetsUpdate',
  segments,
  summary: 'Rename or describe a preset, disable or enable it, or designate an older version of it',
  access: 'admin:write',
  body: {
    mediaType,
    shape: type({
      'name?': 'string',
      'description?': 'string | null',
      'status?': "'active' | 'disabled'",
      'designated_version?': 'number.integer > 0',
    }),
  },
  responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 408, 409, 413) },
}
export const archiveDescription: Description = {
  name: 'presetsArchive',
  segments,
  summary: 'Archive a preset: it is found no more until it is restored, and its slug stays taken',
  access: 'admin:write',
  responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 409) },
}
export const restoreDescription: Description = {
  name: 'presetsRestore',
  segments,
  summary: 'Restore an archived preset as it was',
  access: 'admin:write',
  responses: { 200: designated, ...errorResponses(400, 401, 403, 404, 409) },
}
