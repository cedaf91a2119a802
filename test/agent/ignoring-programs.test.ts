// Programs that ignore the variables of `exec`: which commands are warned of, and when not.
import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execCommand } from '../../src/agent/commands/exec.ts'
import { warningsFor } from '../../src/agent/ignoring-programs.ts'
import { thisMachine } from '../../src/agent/this-machine.ts'
import { startFederation, temporaryFolder } from '../support/latchkey.ts'

const without = async (): Promise<string> => {
  throw new Error('ENOENT')
}
const machine = { environment: { HOME: '/home/a' } as Record<string, string>, readFile: (_path: string) => without() }
const first = async (command: string[], more: Partial<typeof machine> = {}) =>
  (await warningsFor(command, { ...machine, ...more }))[0]?.split(' ')[0]

describe('a warning', () => {
  const rows: [command: string[], program: string | undefined][] = [
    [['codex'], 'codex'],
    [['/usr/local/bin/codex', 'exec', 'hi'], 'codex'],
    [['codex.cmd'], 'codex'],
    [['npx', '-y', '@openai/codex@latest', 'exec', 'hi'], 'codex'],
    [['node', '/opt/codex/bin/codex.js'], 'codex'],
    [['codex', '-c', 'model_provider=latchkey'], undefined],
    [['codex', '-c', 'openai_base_url="http://127.0.0.1:8790/v1"'], undefined],
    [['codex', '-c', 'model=model_provider'], 'codex'],
    [['gemini', '-p', 'hi'], 'gemini'],
    [['claude', '-p', 'about codex'], undefined],
    [['python', 'codex'], undefined],
    [['constructor'], undefined],
  ]
  for (const [command, program] of rows)
    test(`for ${command.join(' ')}: ${program ?? 'none'}`, async () => expect(await first(command)).toBe(program))

  const files: [text: string, program: string | undefined][] = [
    ['model = "x"\nmodel_provider = "latchkey"\n', undefined],
    ['openai_base_url="http://127.0.0.1:8790/v1"', undefined],
    ['[model_providers.latchkey]\nname = "Latchkey"\n', 'codex'],
    ['', 'codex'],
  ]
  for (const [text, program] of files)
    test(`with the configuration ${JSON.stringify(text)}: ${program ?? 'none'}`, async () => {
      const reading = async (path: string) => (path === '/home/a/.codex/config.toml' ? text : without())
      expect(await first(['codex'], { readFile: reading })).toBe(program)
      const elsewhere = { environment: { HOME: '/home/b', CODEX_HOME: '/home/a/.codex' }, readFile: reading }
      expect(await first(['codex'], elsewhere)).toBe(program)
    })
})

test('exec warns, runs the program nevertheless, and the command that it shows gives the program its address', async () => {
  const federation = await startFederation()
  const folder = temporaryFolder()
  const bin = join(folder.path, 'bin')
  mkdirSync(bin)
  // Replaces the program: it shows its arguments.
  writeFileSync(join(bin, 'codex'), `#!/bin/sh\nprintf '%s\\n' "$@" > ${folder.path}/arguments\n`, { mode: 0o755 })
  writeFileSync(join(folder.path, 'jwt'), await federation.mint())
  const lines: string[] = []
  const environment = { PATH: `${bin}:${process.env.PATH}`, HOME: folder.path }
  const context = {
    platform: { ...thisMachine, environment },
    now: Date.now,
    userAgent: 'test',
    print: () => {},
    log: (line: string) => void lines.push(line),
  }
  const given = {
    url: federation.server.baseUrl,
    policy: federation.policy.id,
    identity: `file:${join(folder.path, 'jwt')}`,
  }
  const run = (command: string[]) => execCommand.run(given, command, context)
  expect(await run(['codex', 'exec', 'hi'])).toBe(0)
  expect(await Bun.file(join(folder.path, 'arguments')).text()).toBe('exec\nhi\n')
  expect(lines.map((line) => line.split(' ').slice(0, 3).join(' '))).toContain('latchkey: codex ignores')
  const shown = /exec -- sh -c '(.*)' codex ARGUMENTS$/.exec(lines.find((line) => line.includes('sh -c')) ?? '')?.[1]
  lines.length = 0
  expect(await run(['sh', '-c', shown ?? '', 'codex', 'exec', 'hi'])).toBe(0)
  const filledIn = (await Bun.file(join(folder.path, 'arguments')).text()).split('\n')
  expect(filledIn.find((text) => text.includes('base_url'))).toMatch(
    /^model_providers\.latchkey\.base_url=http:\/\/127\.0\.0\.1:\d+\/v1$/,
  )
  expect(filledIn.slice(-3)).toEqual(['exec', 'hi', ''])
  expect(lines).toEqual([])
  folder.remove()
  await federation.stop()
})
