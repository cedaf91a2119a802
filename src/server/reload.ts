// Takes changed settings into a running server: all of them, or none when one is wrong. It does not know who asks for it.

import { describeError, Fault } from '../fault.ts'
import type { AccessLog } from '../observe/access-log.ts'
import type { Log } from '../observe/log.ts'
import { parseSettings, type SettingTexts } from '../settings/config.ts'
import {
  mergeReloadable,
  type Reload,
  type ReloadResult,
  type SettingsInEffect,
  settingsThatDiffer,
} from '../settings/effective-settings.ts'
import type { PreparedUse, TlsInEffect } from './tls-in-effect.ts'

type Parts = {
  /** The settings of the start. */
  texts: SettingTexts
  /** Reads the settings again. @throws Fault `configuration` */
  reread: () => SettingTexts
  /** Is called with the settings in effect after each reload. */
  keep?: (texts: SettingTexts) => void
  inEffect: SettingsInEffect
  accessLog: AccessLog
  tls: TlsInEffect | undefined
  isStopping: () => boolean
  log: Log
}

/**
 * A reload is atomic: it has no point at which it waits. Both outcomes are logged.
 * @throws Fault `configuration` when a setting or a file is wrong, or `unavailable` while the server stops; then everything stays as it was
 */
export function createReload({
  texts,
  reread,
  keep = () => {},
  inEffect,
  accessLog,
  tls,
  isStopping,
  log,
}: Parts): Reload {
  let current = texts
  return () => {
    const ready: PreparedUse[] = []
    const prepare = <Ready extends PreparedUse>(made: Ready): Ready => {
      ready.push(made)
      return made
    }
    let reloaded: ReloadResult
    try {
      // A new TLS listener or log file would outlive the stop.
      if (isStopping()) throw new Fault('unavailable', 'it is stopping; start it again with the new settings')
      const next = reread()
      const config = parseSettings(next)
      prepare(accessLog.prepare(config.accessLog))
      const pair = tls && prepare(tls.prepare(config.tls ?? tls.files()))
      reloaded = { ...settingsThatDiffer(current, next), tls: pair?.facts ?? null }
      inEffect.replace(config)
      current = mergeReloadable(current, next)
      keep(current)
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
