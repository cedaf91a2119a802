// The table of the preset endpoints: paths, who may call, what they take and return.
import type { RouteDoc } from '../http/documented-route.ts'
import { accessOf } from '../keys/roles.ts'
import {
  jsonOutermostMembersMax,
  presetBodyBytesMax,
  presetBodyDepthMax,
  presetConfigCharactersMax,
} from '../limits.ts'
import { inferencePaths } from '../values/inference-paths.ts'
import { type } from '../values/shape.ts'
import { dialects, readings } from './preset.ts'
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
const one = { path: '/presets/{slug}', segments }
const under = (path: string) => ({ path: `${one.path}/${path}`, segments })
const designated = { data: designatedPresetResponse, says: 'The preset with its designated version' } as const

/** Bounds of every JSON body, which must not be empty. */
const membersOfBody = { minProperties: 1, maxProperties: jsonOutermostMembersMax }
const saveRules = `The body is nested at most ${presetBodyDepthMax} levels deep and smaller than ${presetBodyBytesMax} bytes. The stored settings and system prompt have at most ${presetConfigCharactersMax} characters of JSON. The system prompt has no U+0000. A null counts as an absent field, and unknown fields are ignored.`

const saving = { rules: saveRules, access: accessOf('presets.save'), isConditional: true, ...designated } as const
const reading = { access: 'inference', query: workspaceQuery } as const
const changing = { query: workspaceQuery, ...designated } as const

/** The three requests that create a version (reference: Preset endpoints). */
export const saveDocs = dialects.map((dialect) => ({
  dialect,
  method: 'POST' as const,
  path: one.path + inferencePaths[dialect].endpoint,
  segments: one.segments,
  name: `presetsSaveFrom${dialect[0]?.toUpperCase()}${dialect.slice(1)}`,
  summary: `Create a preset, or its next version, from the body of a ${readings[dialect].name} request; fields of a single request are validated but not stored`,
  body: { schema: { ...readings[dialect].body.schema, ...membersOfBody } },
  ...saving,
}))

export const docs = {
  list: {
    method: 'GET',
    path: '/presets',
    name: 'presetsList',
    summary: 'List the presets of the workspace that are not archived, most recently updated first',
    access: 'inference',
    query: listQuery,
    answer: type({ data: presetResponse.array(), total_count: 'number.integer' }),
    says: 'The presets, without their versions',
    errors: [404],
  },
  show: {
    method: 'GET',
    ...one,
    name: 'presetsShow',
    summary: 'Show a preset with its designated version',
    ...reading,
    ...designated,
  },
  versions: {
    method: 'GET',
    ...under('versions'),
    name: 'presetsVersions',
    summary: 'List the versions of a preset, oldest first',
    access: 'inference',
    query: pageQuery,
    answer: type({
      data: versionResponse.array(),
      total_count: 'number.integer',
      designated_version: 'number.integer',
    }),
    says: 'The versions',
  },
  version: {
    method: 'GET',
    ...under('versions/{version}'),
    name: 'presetsVersion',
    summary: 'Show one version of a preset',
    ...reading,
    data: versionResponse,
    says: 'The version',
  },
  complete: {
    method: 'POST',
    ...under('complete'),
    name: 'presetsComplete',
    summary: 'Show the request that an upstream would get: a body of chat completions, completed with the preset',
    rules:
      'Nothing is sent or stored. The body may name a version in `preset`, such as `support@3`, and no other preset.',
    ...reading,
    body: { schema: { type: 'object' } },
    data: type({ preset_version: 'string', target: 'string', body: 'object' }),
    says: 'The completed request',
  },
  update: {
    method: 'PATCH',
    ...one,
    name: 'presetsUpdate',
    summary: 'Rename or describe a preset, disable or enable it, or designate another version of it',
    rules: 'The designated_version must be a version of the preset.',
    access: accessOf('presets.update'),
    body: updateBody,
    ...changing,
  },
  archive: {
    method: 'DELETE',
    ...one,
    name: 'presetsArchive',
    summary: 'Archive a preset: it is hidden until it is restored, and its slug stays taken',
    access: accessOf('presets.archive'),
    ...changing,
    errors: [408, 413],
  },
  restore: {
    method: 'POST',
    ...under('restore'),
    name: 'presetsRestore',
    summary: 'Restore an archived preset unchanged',
    access: accessOf('presets.restore'),
    ...changing,
  },
} as const satisfies Record<string, RouteDoc>
