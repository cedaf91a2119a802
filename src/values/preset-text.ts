// What slugs and references of presets look like, wherever they stand.
import { presetSlugCharactersMax } from '../limits.ts'

export const presetMarker = '@preset/'

/** 1–128 of `A–Z a–z 0–9 . _ ~ -` (reference: Presets). */
const slugText = `[A-Za-z0-9._~-]{1,${presetSlugCharactersMax}}`
export const presetSlugText = new RegExp(`^${slugText}$`)
/** A slug, or one with the number of a version; and a model that ends in one of these, marked as such. */
export const presetReferenceText = new RegExp(`^${slugText}(@[1-9][0-9]{0,9})?$`)
export const markedModelText = new RegExp(`${presetMarker}${presetReferenceText.source.slice(1)}`)
/** A path that ends in one of the two means another place. */
export const reservedSlugs = ['.', '..']

export function isPresetSlug(text: string): boolean {
  return presetSlugText.test(text) && !reservedSlugs.includes(text)
}
