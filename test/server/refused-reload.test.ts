// A reload that is refused leaves nothing behind of what it had prepared.
import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../src/fault.ts'
import { openAccessLog } from '../../src/observe/access-log.ts'
import { createReload } from '../../src/server/reload.ts'
import type { TlsInEffect } from '../../src/server/tls-in-effect.ts'
import { parseSettings, readSettingTexts } from '../../src/settings/config.ts'
import { createSettingsInEffect } from '../../src/settings/effective-settings.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const openFiles = '/proc/self/fd'
const isOpen = (path: string) =>
  readdirSync(openFiles).some((name) => {
    const link = join(openFiles, name)
    // The listing itself is closed by now.
    return existsSync(link) && readlinkSync(link) === path
  })

test.skipIf(!existsSync(openFiles))('closes the access log that it had opened (needs /proc)', async () => {
  const [before, after] = [join(folder.path, 'before.log'), join(folder.path, 'after.log')]
  const log = () => {}
  const accessLog = openAccessLog({ kind: 'file', path: before }, { databasePath: join(folder.path, 'none.db'), log })
  const texts = readSettingTexts({ flags: {}, environment: {} })
  let seen: boolean | undefined
  const refuse = () => {
    seen = isOpen(after)
    throw new Fault('configuration', 'The pair cannot be used')
  }
  const tls: TlsInEffect = {
    ...{ prepare: refuse, refresh: () => {} },
    files: () => ({ certFile: 'cert.pem', keyFile: 'key.pem' }),
    state: () => ({ startsAt: 0, expiresAt: 1, failure: undefined }),
  }
  const reread = () => ({ ...texts, LATCHKEY_ACCESS_LOG: after })
  const inEffect = createSettingsInEffect(parseSettings(texts))
  const reload = createReload({ texts, reread, inEffect, accessLog, tls, isStopping: () => false, log })
  expect(reload).toThrow('The pair cannot be used')
  expect([seen, isOpen(after), isOpen(before)]).toEqual([true, false, true])
  await accessLog.close()
})
