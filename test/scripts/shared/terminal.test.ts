// Commands on a terminal, which the operating system plays: lists as wide as it is, and colors unless they are unwelcome.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import stringWidth from 'string-width'
import type { Server } from '../../../src/server/server.ts'
import { compiledProgram } from '../../support/compiled-program.ts'
import { serveInProcess } from '../../support/in-process.ts'
import { runCommand, temporaryFolder } from '../../support/latchkey.ts'

const folder = temporaryFolder()
const env = { LATCHKEY_DATABASE_URL: `file:${join(folder.path, 'latchkey.db')}` }
let server: Server
beforeAll(async () => {
  expect((await runCommand(['init'], { cwd: folder.path, env })).code).toBe(0)
  server = await serveInProcess(env)
  for (const name of ['鍵-for-everybody-who-asks-🔑', 'off']) await server.runOperation('keys.create', { name })
  await server.runOperation('keys.disable', { key: 'off' })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

/** What a command writes to a terminal of so many columns. */
async function onTerminal(columns: number, args: string[], more: Record<string, string> = {}): Promise<string> {
  let written = ''
  const decoder = new TextDecoder()
  const closed = Promise.withResolvers<void>()
  const terminal = {
    cols: columns,
    rows: 40,
    data: (_: unknown, chunk: Uint8Array) => {
      written += decoder.decode(chunk, { stream: true })
    },
    exit: () => closed.resolve(),
  }
  const child = Bun.spawn([...compiledProgram(), ...args], { cwd: folder.path, env: { ...env, ...more }, terminal })
  expect(await child.exited).toBe(0)
  await closed.promise
  child.terminal?.close()
  return written.replaceAll('\r\n', '\n')
}

const isColored = (text: string) => text.includes('\u001b[')

describe('a list on a terminal', () => {
  for (const columns of [60, 80, 100, 120, 250]) {
    test(`of ${columns} columns is no wider`, async () => {
      const lines = Bun.stripANSI(await onTerminal(columns, ['keys', 'list']))
        .trimEnd()
        .split('\n')
      const rows = lines.filter((line) => !line.startsWith('Too wide to show'))
      expect(rows).toHaveLength(4)
      expect(Math.max(...rows.map((row) => stringWidth(row)))).toBeLessThanOrEqual(columns)
      const starts = rows.map((row) => stringWidth(row.split(/(?<= {2})(?=KIND|management|inference)/)[0] ?? ''))
      expect(new Set(starts).size).toBe(1)
    })
  }

  test('has colors', async () => {
    const text = await onTerminal(100, ['keys', 'list'], { TERM: 'xterm-256color' })
    expect(text).toContain('\u001b[31mdisabled\u001b[0m')
  })

  for (const [name, more] of [
    ['NO_COLOR', { NO_COLOR: '1' }],
    ['a terminal that knows none', { TERM: 'dumb' }],
  ] as const) {
    test(`has none with ${name}`, async () => {
      expect(isColored(await onTerminal(100, ['keys', 'list'], more))).toBe(false)
    })
  }

  test('has some where NO_COLOR is there but empty, as no-color.org has it', async () => {
    expect(isColored(await onTerminal(100, ['keys', 'list'], { NO_COLOR: '' }))).toBe(true)
  })
})

test('a list in a pipe has all columns and no colors', async () => {
  const { stdout } = await runCommand(['keys', 'list'], { cwd: folder.path, env: { ...env, TERM: 'xterm' } })
  expect(isColored(stdout)).toBe(false)
  expect(stdout.split('\n')[0]).toEndWith('LAST USED (UTC)')
})
