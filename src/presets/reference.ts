// How a request names a preset (reference: Using a preset), and which slugs are valid. It does not know which presets exist.
import { Fault } from '../fault.ts'
import { presetSlugCharactersMax, presetVersionMax } from '../limits.ts'
import { apiKeyInText } from '../values/id-text.ts'
import { isPresetSlug, presetMarker, presetReferenceText } from '../values/preset-text.ts'

type Fields = Record<string, unknown>

/** `version` is undefined for the designated version. */
export type PresetReference = { slug: string; version: number | undefined }

/** @throws Fault `invalid` */
export function checkPresetSlug(text: string): void {
  if (apiKeyInText.test(text)) throw refused('A slug must not contain an API key: choose another slug')
  if (!isPresetSlug(text))
    throw refused(
      `${JSON.stringify(text.slice(0, presetSlugCharactersMax))} is not a valid slug: use 1 to ${presetSlugCharactersMax} letters, digits or . _ ~ -`,
    )
}

/** Reads `slug`, or `slug@3` for version 3, with or without `@preset/` before it. @throws Fault `invalid` */
export function parsePresetReference(text: string): PresetReference {
  const reference = parse(text.startsWith(presetMarker) ? text.slice(presetMarker.length) : text)
  if (reference === undefined)
    throw refused(
      `${JSON.stringify(text)} is not a preset reference: use the slug, such as support, or support@3 for version 3`,
    )
  return reference
}

/**
 * The preset that a request names: `"model": "@preset/slug"`, `"model": "vendor/model@preset/slug"` or `"preset": "slug"`, each with
 * `@3` after the slug for version 3. Undefined when the request names no preset (reference: Using a preset).
 * @throws Fault `invalid` when it names two presets, an invalid slug, or a preset in the list of fallbacks
 */
export function readPresetReference(body: Fields): PresetReference | undefined {
  const { model, models, preset } = body
  if (Array.isArray(models) && models.some((name) => typeof name === 'string' && name.includes(presetMarker)))
    throw refused('models cannot name a preset: use model or preset')
  const marked = markedPart(model)
  const inModel = marked === undefined ? undefined : parseReference(marked, 'model')
  if (preset === undefined || preset === null) return inModel
  const beside = parseReference(preset, 'preset')
  if (inModel !== undefined && (inModel.slug !== beside.slug || inModel.version !== beside.version))
    throw refused(
      `model names the preset ${describe(inModel)} and preset names ${describe(beside)}: name only one preset`,
    )
  return beside
}

/** The body without `preset` and without the marker in `model`, which no upstream knows. A model that is only the marker is removed. */
export function withoutPresetReference(body: Fields): Fields {
  const { preset: _preset, ...rest } = body
  if (markedPart(rest.model) === undefined) return rest
  const { model, ...others } = rest
  const own = (model as string).slice(0, (model as string).indexOf(presetMarker))
  return own === '' ? others : { ...rest, model: own }
}

function markedPart(model: unknown): string | undefined {
  if (typeof model !== 'string') return undefined
  const at = model.indexOf(presetMarker)
  return at < 0 ? undefined : model.slice(at + presetMarker.length)
}

function parseReference(text: unknown, field: 'model' | 'preset'): PresetReference {
  const reference = typeof text === 'string' ? parse(text) : undefined
  if (reference !== undefined) return reference
  const form = field === 'model' ? '"@preset/slug" or "vendor/model@preset/slug"' : '"slug"'
  throw refused(`${field} is not a preset reference: use ${form}, with "@3" at the end for version 3`)
}

function refused(message: string): Fault {
  return new Fault('invalid', message, { reason: 'preset_reference', detail: message })
}

function parse(text: string): PresetReference | undefined {
  const [slug = '', version] = text.split('@', 2)
  const isVersion = version === undefined || Number(version) <= presetVersionMax
  if (!presetReferenceText.test(text) || !isPresetSlug(slug) || !isVersion) return undefined
  return { slug, version: version === undefined ? undefined : Number(version) }
}

function describe({ slug, version }: PresetReference): string {
  return JSON.stringify(version === undefined ? slug : `${slug}@${version}`)
}
