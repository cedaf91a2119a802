// Takes changed settings into a running server: all of them, or none when one is wrong. It does not know who asks for it.
import { type Config, parseSettings, type SettingTexts } from '../config.ts'
import {
  mergeReloadable,
  type Reload,
  type Reloaded,
  type SettingsInEffect,
  settingsThatDiffer,
} from '../effective-settings.ts'
import { describeError } from '../fault.ts'
import type { Log } from '../observe/log.ts'

/** Something that is made ready for new settings, which may fail, before it uses them, which does not. */
export type Prepared = { use: () => void; discard: () => void }

type Parts = {
  /** The settings of the start. */
  texts: SettingTexts
  /** Reads the settings again. @throws Fault `configuration` */
  reread: () => SettingTexts
  inEffect: SettingsInEffect
  /** Makes a part of the server ready. @throws Fault `configuration` */
  prepare: ((config: Config) => Prepared)[]
  log: Log
}

/**
 * A reload at a time is atomic: it has no point at which it waits. Both outcomes are logged.
 * @throws Fault `configuration` when a setting or a file is wrong; then everything stays as it was
 */
export function createReload({ texts, reread, inEffect, prepare, log }: Parts): Reload {
  let current = texts
  return () => {
    const ready: Prepared[] = []
    let reloaded: Reloaded
    try {
      const next = reread()
      const config = parseSettings(next)
      for (const make of prepare) ready.push(make(config))
      reloaded = settingsThatDiffer(current, next)
      inEffect.replace(config)
      current = mergeReloadable(current, next)
    } catch (error) {
      for (const { discard } of ready) discard()
      log('error', 'reload_failed', { reason: describeError(error) })
      throw error
    }
    for (const { use } of ready) use()
    log('info', 'reloaded', reloaded)
    return reloaded
  }
}
