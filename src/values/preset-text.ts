// The form of preset slugs and of references to presets.
import { presetSlugCharactersMax } from '../limits.ts'
import { apiKeyInText } from './id-text.ts'

export const presetMarker = '@preset/'

/** 1–128 of `A–Z a–z 0–9 . _ ~ -` (reference: Presets). */
const slugText = `[A-Za-z0-9._~-]{1,${presetSlugCharactersMax}}`
export const presetSlugText = new RegExp(`^${slugText}$`)
/** A slug with an optional version number; and a model name that ends in a marked reference. */
export const presetReferenceText = new RegExp(`^${slugText}(@[1-9][0-9]{0,9})?$`)
export const markedModelText = new RegExp(`${presetMarker}${presetReferenceText.source.slice(1)}`)
/** In a path, each of the two means another place. */
export const reservedSlugs = ['.', '..']

/** An API key that somebody pasted is no slug: slugs are shown to everybody. */
export function isPresetSlug(text: string): boolean {
  return presetSlugText.test(text) && !reservedSlugs.includes(text) && !apiKeyInText.test(text)
}
