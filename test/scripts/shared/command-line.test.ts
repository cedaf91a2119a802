// How a command line is read: options before and after the command, typing errors, help of any depth.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Server } from '../../../src/server/server.ts'
import { serveInProcess } from '../../support/in-process.ts'
import { runCommand, temporaryFolder } from '../../support/latchkey.ts'

const folder = temporaryFolder()
const database = `file:${join(folder.path, 'latchkey.db')}`
const settingsFile = join(folder.path, 'latchkey.conf')
let server: Server
const run = (...args: string[]) => runCommand(args, { cwd: folder.path })
beforeAll(async () => {
  writeFileSync(settingsFile, `LATCHKEY_DATABASE_URL=${database}\n`)
  expect((await run('init', '--database-url', database)).code).toBe(0)
  server = await serveInProcess({ LATCHKEY_DATABASE_URL: database })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

describe('an option that every command takes works', () => {
  const after = ['keys', 'list', '--json', '--config', settingsFile]
  const rows: [name: string, args: string[]][] = [
    ['before the command', ['--json', '--config', settingsFile, 'keys', 'list']],
    ['between group and command', ['keys', '--config', settingsFile, '--json', 'list']],
    ['on both sides', ['--config', settingsFile, 'keys', 'list', '--json']],
    ['as a setting before the command', [`--database-url=${database}`, '--json', 'keys', 'list']],
    [
      'with a value that is a switch',
      ['--insecure-issuers', 'yes', '--config', settingsFile, '--json', 'keys', 'list'],
    ],
  ]
  for (const [name, args] of rows) {
    test(name, async () => {
      const { code, stdout, stderr } = await run(...args)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(JSON.parse(stdout)).toEqual(JSON.parse((await run(...after)).stdout))
    })
  }

  test('before a subcommand of a command that also runs without one', async () => {
    const { code, stdout } = await run('audit', '--json', '--config', settingsFile, 'changes', '--limit', '1')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ data: [{ operation: 'init' }] })
  })

  test('and the one nearest to the command counts', async () => {
    const { code, stdout } = await run('--config', 'none.conf', 'keys', 'list', '--config', settingsFile, '--json')
    expect({ code, count: (JSON.parse(stdout) as { data: unknown[] }).data.length }).toEqual({ code: 0, count: 1 })
  })

  test('also for errors, which are then JSON', async () => {
    const { code, stderr } = await run('--json', '--config', settingsFile, 'keys', 'show', 'none')
    expect({ code, told: JSON.parse(stderr) as object }).toMatchObject({
      code: 1,
      told: { error: { code: 'not_found' } },
    })
  })

  test('and a switch that would take the command for its value says how to write it', async () => {
    const { code, stderr } = await run('--insecure-issuers', 'keys', 'list')
    expect(code).toBe(2)
    expect(stderr).toContain('--insecure-issuers=true')
  })
})

describe('a typing error is answered with what was probably meant:', () => {
  const rows: [name: string, args: string[], meant: string][] = [
    ['a required option', ['keys', 'create', '--nam', 'app'], '--name'],
    [
      'one of several required options',
      ['issuers', 'add', '--name', 'idp', '--issuer-ulr', 'https://idp.example'],
      '--issuer-url',
    ],
    ['an option before the command', ['--confg', settingsFile, 'keys', 'list'], '--config'],
    ['a command of a group', ['keys', 'creat', '--name', 'app'], 'create'],
  ]
  for (const [name, args, meant] of rows) {
    test(name, async () => {
      const { code, stdout, stderr } = await run(...args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(`did you mean ${meant}?`)
    })
  }

  test('a wrong value is quoted with what to use instead and where help is', async () => {
    const rows: [args: string[], rule: string][] = [
      [['keys', 'create', '--name', 'app', '--budget-reset', 'yearly'], '--budget-reset: use daily, weekly or monthly'],
      [['keys', 'create', '--name', 'app', '--budget', 'yearly'], '--budget: use an amount such as 0.15'],
    ]
    for (const [args, rule] of rows) {
      const { code, stderr } = await run(...args)
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: `latchkey: "yearly" is not a valid value for ${rule}; see: latchkey keys create --help\n`,
      })
    }
    const { stderr } = await run('keys', 'create', '--name', 'app', '--allowed-models')
    expect(stderr).toBe('latchkey: Option --allowed-models needs a value; see: latchkey keys create --help\n')
  })

  test('a file that cannot be read is named with the reason', async () => {
    const { code, stderr } = await run('policies', 'check', '--token-file', 'none.txt')
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'latchkey: "none.txt" cannot be read: the file does not exist\n',
    })
  })

  test('required options that are missing are all named', async () => {
    const { code, stderr } = await run('prices', 'set', 'big')
    expect(code).toBe(2)
    expect(stderr).toMatch(/^latchkey: [^\n]*--prompt <dollars>[^\n]*--completion <dollars>[^\n]*\n$/)
  })
})

describe('help', () => {
  const rows: [asked: string[], same: string[]][] = [
    [
      ['help', 'keys', 'create'],
      ['keys', 'create', '--help'],
    ],
    [
      ['help', 'audit', 'show'],
      ['audit', 'show', '--help'],
    ],
    [
      ['help', 'keys'],
      ['keys', '--help'],
    ],
    [
      ['keys', 'help', 'create'],
      ['keys', 'create', '--help'],
    ],
    [['help'], ['--help']],
  ]
  for (const [asked, same] of rows) {
    test(`${asked.join(' ')} shows what ${same.join(' ')} shows`, async () => {
      const [one, other] = await Promise.all([run(...asked), run(...same)])
      expect(one).toEqual(other)
      expect(one).toMatchObject({ code: 0, stderr: '' })
    })
  }

  test('of a command that does not exist names it', async () => {
    const { code, stdout, stderr } = await run('help', 'keys', 'creat')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('"keys creat"')
  })
})
