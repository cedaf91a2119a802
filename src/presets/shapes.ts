// Input about presets other than their bodies, for commands and preset endpoints.
import { nameCharactersMax, presetDescriptionCharactersMax, presetPageRowsMax, presetVersionMax } from '../limits.ts'
import { isPresetSlug, presetSlugText, reservedSlugs } from '../values/preset-text.ts'
import { type } from '../values/shape.ts'
import { offsetShape, textShape, withoutApiKey } from '../values/shapes.ts'

/** Any text: terminal output makes it printable. */
export const presetLabels = {
  'name?': withoutApiKey(textShape(1, nameCharactersMax)),
  'description?': withoutApiKey(textShape(1, presetDescriptionCharactersMax)).or('null'),
} as const

export const presetVersionShape = type(`1 <= number.integer <= ${presetVersionMax}`)

/** The fields that an update of a preset may set. */
export const presetChanges = {
  ...presetLabels,
  'status?': "'active' | 'disabled'",
  'designated_version?': presetVersionShape,
} as const

export const presetPage = {
  'offset?': offsetShape,
  'limit?': `1 <= number.integer <= ${presetPageRowsMax}`,
} as const

/** A page of the list of presets. */
export const presetList = {
  ...presetPage,
  'contains?': textShape(1, nameCharactersMax).configure({
    says: 'Only presets whose slug or name contains this text, in any case',
  }),
} as const

export const slugShape = type('string')
  .narrow((text, context) => isPresetSlug(text) || context.mustBe('the slug of a preset'))
  .configure({ pattern: presetSlugText.source, not: { enum: reservedSlugs }, says: 'The slug of the preset' })
