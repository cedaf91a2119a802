// Help teaches by example: every command has one, the program and the scripts show it with exit code 0.
import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Command } from 'commander'
import { auditCommand } from '../../scripts/audit.ts'
import { devCommand } from '../../scripts/dev.ts'
import { initCommand } from '../../scripts/init.ts'
import { issuersCommand } from '../../scripts/issuers.ts'
import { keysCommand } from '../../scripts/keys.ts'
import { masterKeyCommand } from '../../scripts/master-key.ts'
import { organizationsCommand, workspacesCommand } from '../../scripts/organizations.ts'
import { policiesCommand } from '../../scripts/policies.ts'
import { serveCommand } from '../../scripts/serve.ts'
import { usageCommand } from '../../scripts/usage.ts'
import { settings } from '../../src/settings/settings.ts'
import { runCommand, temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const single = [initCommand, serveCommand, devCommand, usageCommand, auditCommand].map((make) => make())
const groups = [
  masterKeyCommand,
  organizationsCommand,
  workspacesCommand,
  keysCommand,
  issuersCommand,
  policiesCommand,
].map((make) => make())
const leaves = [
  ...single.map((made) => ({ path: made.name(), made })),
  ...groups.flatMap((group) => group.commands.map((made) => ({ path: `${group.name()} ${made.name()}`, made }))),
]

function helpOf(made: Command): string {
  let text = ''
  made.configureOutput({ writeOut: (part) => (text += part) }).outputHelp()
  return text
}

describe('the help of', () => {
  for (const { path, made } of leaves) {
    test(`${path} says what it does, ends in an example of itself and knows --json`, () => {
      const help = helpOf(made)
      expect(made.description()).not.toBe('')
      expect(help).toContain('--json')
      expect(help).toContain('--database-url')
      expect(help.split('Examples:\n')[1] ?? '').toStartWith(`  $ latchkey ${path}`)
      for (const line of help.split('Examples:\n')[1]?.trim().split('\n') ?? [])
        expect(line).toContain(`$ latchkey ${path}`)
    })
  }

  test('the commands that the customer asked for is there', () => {
    const wanted = {
      organizations: ['create', 'list', 'plan'],
      keys: ['create', 'list', 'show', 'disable', 'enable', 'delete'],
      issuers: ['add', 'list', 'show', 'update', 'refresh', 'delete'],
      policies: ['create', 'list', 'show', 'update', 'disable', 'enable', 'delete'],
    }
    const paths = leaves.map(({ path }) => path)
    for (const [group, verbs] of Object.entries(wanted))
      for (const verb of verbs) expect(paths).toContain(`${group} ${verb}`)
    for (const path of ['init', 'serve', 'dev', 'usage', 'audit']) expect(paths).toContain(path)
  })

  test('serve names every setting with its flag and its name in the environment', () => {
    const help = helpOf(serveCommand())
    for (const { env } of settings) expect(help).toContain(`(${env})`)
  })
})

describe('as a user runs it,', () => {
  const script = (name: string) => [process.execPath, join(import.meta.dirname, `../../scripts/${name}.ts`)]
  const shown: [name: string, args: string[], contains: string, program?: string[]][] = [
    ['the program', ['--help'], '$ latchkey init'],
    ['a group', ['policies', '--help'], 'disable'],
    ['a command', ['policies', 'create', '--help'], '$ latchkey policies create'],
    ['a script alone', ['create', '--help'], '$ latchkey keys create', script('keys')],
    ['a script that is one command', ['--help'], '$ latchkey serve', script('serve')],
  ]
  for (const [name, args, contains, program] of shown) {
    test(`${name} shows its help with exit code 0 and touches nothing`, async () => {
      const { code, stdout, stderr } = await runCommand(args, { cwd: folder.path, program })
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toContain(contains)
    })
  }

  test('--version prints the version', async () => {
    const { code, stdout } = await runCommand(['--version'], { cwd: folder.path })
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })

  test('a group without a command is an error in JSON for who asked for JSON', async () => {
    const { code, stdout, stderr } = await runCommand(['keys', '--json'], { cwd: folder.path })
    expect([code, stdout, JSON.parse(stderr)]).toEqual([
      2,
      '',
      { error: { code: 'usage', message: expect.any(String) } },
    ])
  })

  test('a group without a command shows its help as wrong usage', async () => {
    const { code, stdout, stderr } = await runCommand(['keys'], { cwd: folder.path })
    expect(code).toBe(2)
    expect(stdout + stderr).toContain('create')
  })
})
