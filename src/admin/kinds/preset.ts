// The fields of a preset, in the order in which documents have them. Responses do not follow from it: callers read the same ones from the
// preset endpoints, a room below (presets/responses). Nor do commands: most of what they take is content for a version, not a field.

import { presetSlugCharactersMax } from '../../limits.ts'
import type { Preset } from '../../presets/drafts.ts'
import { presetChanges } from '../../presets/shapes.ts'
import { type } from '../../values/shape.ts'
import { nameShape, textShape } from '../../values/shapes.ts'
import type { Fields } from './fields.ts'

export const presetFields = {
  slug: { shape: textShape(1, presetSlugCharactersMax), required: true, change: false, column: 'slug' },
  workspace: { shape: nameShape, default: 'default', change: false },
  name: { shape: presetChanges['name?'], column: 'name' },
  description: { shape: presetChanges['description?'], column: 'description' },
  status: { shape: type(presetChanges['status?']), default: 'active', column: 'status' },
  system_prompt: { shape: type('string | null'), change: false, isSourced: true },
  config: { shape: type('object'), required: true, change: false },
  designated_version: { shape: presetChanges['designated_version?'], entry: false, column: 'designatedVersion' },
} as const satisfies Fields<Preset>
