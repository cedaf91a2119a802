// The master key of a server database is lost: a new one takes the place of its file.
import { expect, test } from 'bun:test'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { dependencies } from '../../scripts/shared/command-line.ts'
import { runInProcess } from '../../scripts/shared/in-process.ts'
import type { OperationName } from '../../src/admin/operations.ts'
import { readLocalUser } from '../../src/admin/transport/local-user.ts'
import { loadConfig } from '../../src/settings/config.ts'
import { startHranaServer } from '../support/hrana-server.ts'
import { temporaryFolder } from '../support/latchkey.ts'

test('a master key file that is gone is replaced by a new one', async () => {
  const folder = temporaryFolder()
  const database = await startHranaServer({ path: join(folder.path, 'server.db') })
  const file = join(folder.path, 'master.key')
  const settings = { LATCHKEY_DATABASE_URL: database.url, LATCHKEY_MASTER_KEY_FILE: file }
  const run = (name: OperationName, input: object) => {
    const call = { name, input, user: readLocalUser({}) }
    const config = loadConfig({ flags: settings, environment: {} })
    return runInProcess(config, { ...dependencies, log: () => {} }, call, async () => undefined)
  }
  await run('init', {})
  rmSync(file)
  expect(await run('master_key.replace', { lost: true })).toMatchObject({ replaced: true, signing_keys_ended: 1 })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(await run('signing_keys.rotate', { at_once: true })).toMatchObject({ id: expect.any(String) })
  await database.close()
  folder.remove()
})
