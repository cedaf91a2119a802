// The settings of a running server: those that a reload can change, as one value that is read where it is needed, and how settings are shown.
import type { Config, SettingTexts } from './config.ts'
import type { Setting } from './setting.ts'
import { type SettingName, settings } from './settings.ts'

/** What a reload can change without touching a file or the listener. */
export type ReloadableSettings = Readonly<Pick<Config, 'logLevel' | 'rateLimit' | 'trustedProxies' | 'upstreamApiKey'>>

/** Readers keep no copy: the next request must see a new value. */
export type SettingsInEffect = {
  read: () => ReloadableSettings
  replace: (next: ReloadableSettings) => void
}

export function createSettingsInEffect(first: ReloadableSettings): SettingsInEffect {
  let current = first
  return {
    read: () => current,
    replace: (next) => {
      current = next
    },
  }
}

/** Every setting with its text, null where nothing sets it, and `set` in place of a secret. */
export function describeSettings(texts: SettingTexts): Record<SettingName, string | null> {
  const shown = settings.map((setting: Setting) => {
    const text = texts[setting.env as SettingName] ?? null
    return [setting.env, text !== null && setting.isSecret === true ? 'set' : text]
  })
  return Object.fromEntries(shown)
}

/** By name: the settings whose new values are in effect, and those that differ from the ones in effect until the server restarts. */
export type SettingDifferences = { changed: SettingName[]; needs_restart: SettingName[] }
/** `tls` is null without TLS. */
export type ReloadResult = SettingDifferences & { tls: { replaced: boolean; expires_at: string } | null }
export type Reload = () => ReloadResult

/** The settings whose texts differ, by whether a running server takes them. */
export function settingsThatDiffer(current: SettingTexts, next: SettingTexts): SettingDifferences {
  const differing = settings.filter(({ env }) => current[env] !== next[env]).map(({ env }) => env)
  return {
    changed: differing.filter((env) => takesEffect(env, current, next)),
    needs_restart: differing.filter((env) => !takesEffect(env, current, next)),
  }
}

/** The settings in effect after a reload: those that need a restart keep their texts. */
export function mergeReloadable(current: SettingTexts, next: SettingTexts): SettingTexts {
  return Object.fromEntries(settings.map(({ env }) => [env, (takesEffect(env, current, next) ? next : current)[env]]))
}

/** TLS files can be replaced by others, but TLS cannot be turned on or off. */
function takesEffect(env: SettingName, current: SettingTexts, next: SettingTexts): boolean {
  const setting: Setting | undefined = settings.find((each) => each.env === env)
  const isSwitch = env.startsWith('LATCHKEY_TLS_') && (current[env] === undefined) !== (next[env] === undefined)
  return setting?.isReloadable === true && !isSwitch
}
