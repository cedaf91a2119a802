// The log lines of a server's life: its start with every setting, a rotation of its signing key, its stop; and what a log level leaves out.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import packageJson from '../../package.json' with { type: 'json' }
import { settings } from '../../src/settings/settings.ts'
import { type Installation, install } from '../support/installation.ts'
import { isServerKind } from '../support/server-kind.ts'
import { until } from '../support/until.ts'

let installation: Installation
beforeEach(async () => {
  installation = await install()
})
afterEach(() => installation.remove())

const parse = (stderr: string) =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('start, rotation and stop are logged, with every setting and without a secret', async () => {
  const { serving, ask } = await installation.serve(undefined, {
    LATCHKEY_UPSTREAM_API_KEY: 'top-secret',
    LATCHKEY_BASE_URL: '',
  })
  const { id } = await ask('signing_keys.rotate')
  expect(await serving.stop()).toBe(0)
  await until('the last line', () => serving.stderr().includes('"stopped"'))
  const lines = parse(serving.stderr())
  expect(lines.map(({ level, event }) => [level, event])).toEqual([
    ['info', 'started'],
    // On a server database, the command itself rotates.
    ...(isServerKind ? [] : [['info', 'signing_key_rotated']]),
    ['info', 'audit_checkpoint'],
    ['info', 'stopped'],
  ])
  const [started, rotated] = lines
  expect(started).toMatchObject({ version: packageJson.version, listening: serving.facts.listening })
  const shown = started?.settings as Record<string, unknown>
  expect(Object.keys(shown)).toEqual(settings.map(({ env }) => env))
  expect(shown).toMatchObject({ LATCHKEY_RATE_LIMIT: '0', LATCHKEY_UPSTREAM_API_KEY: 'set', LATCHKEY_MASTER_KEY: null })
  expect(isServerKind ? { id } : rotated).toMatchObject({ id })
  expect(serving.stderr()).not.toContain('top-secret')
})

test('the level warn leaves them out', async () => {
  const { serving, ask } = await installation.serve(undefined, { LATCHKEY_LOG_LEVEL: 'warn', LATCHKEY_BASE_URL: '' })
  await ask('signing_keys.rotate')
  expect(await serving.stop()).toBe(0)
  expect(serving.stderr()).toBe('')
})

test('a rotation by a command without a server prints no log line', async () => {
  const { code, stderr } = await installation.run('signing-keys', 'rotate')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})
