// A deletion asks at a terminal and shows what stops. In a pipe it deletes at once, as scripts expect.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Server } from '../../../src/server/server.ts'
import { compiledProgram } from '../../support/compiled-program.ts'
import { serveInProcess } from '../../support/in-process.ts'
import { runCommand, temporaryFolder } from '../../support/latchkey.ts'

const folder = temporaryFolder()
const env = { LATCHKEY_DATABASE_URL: `file:${join(folder.path, 'latchkey.db')}` }
let server: Server
const run = (...args: string[]) => runCommand(args, { cwd: folder.path, env })
beforeAll(async () => {
  expect((await run('init')).code).toBe(0)
  server = await serveInProcess(env)
  await server.runOperation('issuers.add', { name: 'idp', issuer_url: 'https://idp.example.com' })
  for (const name of ['app', 'spare', 'batch']) await server.runOperation('keys.create', { name })
  for (const name of ['ci', 'nightly', 'off'])
    await server.runOperation('policies.create', { name, issuer: 'idp', audience: 'llm', subject: name, key: 'app' })
  await server.runOperation('policies.pause', { policy: 'off' })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})
const keyNames = async () => (await server.runOperation('keys.list', {})).data.map(({ name }) => name)

/** Answers the question of a command at a terminal. */
async function onTerminal(answer: string, ...args: string[]): Promise<{ code: number; written: string }> {
  let written = ''
  let isAnswered = false
  const closed = Promise.withResolvers<void>()
  const data = (terminal: Bun.Terminal, chunk: Uint8Array) => {
    written += new TextDecoder().decode(chunk)
    if (isAnswered || !written.includes('Delete? [y/N] ')) return
    isAnswered = true
    terminal.write(answer)
  }
  const terminal = { cols: 250, rows: 40, data, exit: () => closed.resolve() }
  const environment = { ...env, NO_COLOR: '1' }
  const child = Bun.spawn([...compiledProgram(), ...args], { cwd: folder.path, env: environment, terminal })
  const code = await child.exited
  await closed.promise
  child.terminal?.close()
  return { code, written: Bun.stripANSI(written).replaceAll('\r', '') }
}

describe('a dry run', () => {
  const rows: [args: string[], shown: string][] = [
    [['keys', 'delete', 'app'], 'Would delete the key app; 2 policies would issue no tokens: '],
    [['issuers', 'delete', 'idp'], 'Would delete the issuer idp; 2 policies would issue no tokens: '],
    [['policies', 'delete', 'ci'], 'Would delete the policy ci; 1 policy would issue no tokens: ci\n'],
    [['keys', 'delete', 'spare', 'batch'], 'Would delete the key spare\nWould delete the key batch\n'],
  ]
  for (const [args, shown] of rows)
    test(`of ${args.join(' ')} shows what stops, and deletes nothing`, async () => {
      const before = await keyNames()
      expect(await run(...args, '--dry-run')).toMatchObject({ code: 0, stdout: expect.stringContaining(shown) })
      expect(await keyNames()).toEqual(before)
    })

  test('prints JSON, and names what does not exist', async () => {
    expect(JSON.parse((await run('keys', 'delete', 'app', '--dry-run', '--json')).stdout)).toMatchObject({
      dry_run: true,
      data: [{ kind: 'key', name: 'app', stops: expect.arrayContaining(['ci', 'nightly']) }],
    })
    expect(await run('keys', 'delete', 'none', '--dry-run')).toMatchObject({ code: 1 })
  })
})

describe('a deletion', () => {
  test('at a terminal asks, and deletes nothing without a yes', async () => {
    const { code, written } = await onTerminal('\r', 'keys', 'delete', 'app')
    expect(written).toContain('This deletes the key app; 2 policies would issue no tokens')
    expect(written).toContain('Nothing was deleted')
    expect([code, await keyNames()]).toEqual([1, expect.arrayContaining(['app'])])
  })

  test('at a terminal deletes after a yes, and with --yes does not ask', async () => {
    expect((await onTerminal('y\r', 'keys', 'delete', 'spare')).code).toBe(0)
    const { code, written } = await onTerminal('', 'keys', 'delete', 'batch', '--yes')
    expect([code, written]).toEqual([0, expect.not.stringContaining('[y/N]')])
    expect(await keyNames()).not.toEqual(expect.arrayContaining(['spare']))
    expect(await keyNames()).not.toEqual(expect.arrayContaining(['batch']))
  })

  test('in a pipe is done at once, without a warning', async () => {
    expect(await run('policies', 'delete', 'off')).toMatchObject({ code: 0, stderr: '' })
  })
})
