// The models and presets that a key or an access token is limited to: compiled once, when the key is loaded or the
// token is verified.
import { compilePatterns, type Patterns } from '../values/pattern.ts'

/** The patterns as an administrator wrote them, and whether a name fits one of them. */
export type AllowList = { readonly names: readonly string[]; readonly allows: Patterns }
/** Undefined where there is no limit. */
export type AllowLists = { readonly models: AllowList | undefined; readonly presets: AllowList | undefined }

type Names = readonly string[] | null

export function compileAllowLists(limits: { allowedModels: Names; allowedPresets: Names }): AllowLists {
  return { models: compile(limits.allowedModels), presets: compile(limits.allowedPresets) }
}

function compile(names: Names): AllowList | undefined {
  return names === null ? undefined : { names, allows: compilePatterns(names) }
}
