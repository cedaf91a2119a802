// The manual, held against the program: what it lists is what exists.
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { shownIn } from '../../scripts/shared/command-line.ts'
import { renderMarkdown } from '../../scripts/shared/markdown.ts'
import { oauthErrorOf, reasonNames, stepNames, stepOf } from '../../src/federation/subject-token/refusal.ts'
import { topics } from '../../src/manual/topics.ts'
import { configKeys } from '../../src/presets/schema/parameters.ts'
import { flagOf, settings } from '../../src/settings/settings.ts'
import { runCommand } from '../support/latchkey.ts'
import { namesIn, rowsOf, sectionOf, sectionsOf } from '../support/manual.ts'

const readReadme = () => readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')

/** Every command of the program, from the functions that make them. */
async function findCommands(): Promise<Command[]> {
  const folder = join(import.meta.dirname, '../../scripts')
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts') && !['build.ts', 'release.ts'].includes(name))
  const modules = await Promise.all(
    files.map(async (name) => [name, (await import(join(folder, name))) as Record<string, unknown>] as const),
  )
  const made = modules.flatMap(([file, module]) => {
    const makers = Object.entries(module).filter(([name]) => name.endsWith('Command'))
    return makers.map(([, make]) => ({ file, command: (make as () => Command)() }))
  })
  // Some files make a part of a group only.
  const children = new Set(made.flatMap(({ command }) => command.commands.map((child) => child.name())))
  const isWhole = (file: string, name: string) => file === `${name}.ts` || !children.has(name)
  return made.filter(({ file, command }) => isWhole(file, command.name())).map(({ command }) => command)
}

describe('the manual', () => {
  test('has every file as a topic, each with one title', () => {
    const files = readdirSync(join(import.meta.dirname, '../../src/manual')).filter((name) => name.endsWith('.md'))
    expect(files.map((name) => name.slice(0, -3)).toSorted()).toEqual([...topics.keys()].toSorted())
    for (const [name, text] of topics)
      expect({ name, titles: text.replaceAll(/^```[\s\S]*?^```/gm, '').match(/^# .+$/gm)?.length }).toEqual({
        name,
        titles: 1,
      })
  })

  test('is listed in the README, page by page', () => {
    const listed = [...readReadme().matchAll(/^\| \[(\w+)\]\(src\/manual\/(\w+)\.md\) \|/gm)].map(([, name, file]) => [
      name,
      file,
    ])
    expect(listed).toEqual([...topics.keys()].map((name) => [name, name]))
  })

  test('begins its list of changes with the version of the program', () => {
    expect(sectionsOf('changes')[1]?.heading).toBe(packageJson.version)
  })

  test('lists every setting with its default, and no other', () => {
    const [text = ''] = (topics.get('configuration') ?? '').split('\n## ', 1)
    const rows = rowsOf(text).map(([name, value]) => [namesIn(name)[0], value])
    expect(rows.map(([name]) => name)).toEqual(settings.map(({ env }) => env))
    const defaults = settings.flatMap((setting) =>
      'default' in setting ? [[setting.env, `\`${setting.default}\``] as const] : [],
    )
    expect(Object.fromEntries(rows)).toMatchObject(Object.fromEntries(defaults))
  })

  test('lists every reason of a refused exchange under its OAuth error, with its step and what to do', () => {
    const rows = sectionsOf('troubleshooting')
      .filter(({ heading }) => heading.startsWith('`'))
      .flatMap(({ heading, text }) =>
        rowsOf(text).map(([reason, step, advice]) => [namesIn(reason)[0], step, heading, advice]),
      )
    for (const [, , , advice] of rows) expect(advice).toMatch(/^\S.*\.$/)
    const reasons = reasonNames.map((reason) => [reason, stepOf(reason), `\`${oauthErrorOf(reason)}\``])
    expect(rows.map((row) => row.slice(0, 3)).toSorted()).toEqual(reasons.toSorted())
  })

  test('lists the steps of an exchange in their order', () => {
    const text = (topics.get('troubleshooting') ?? '').replaceAll('\n', ' ')
    expect(text).toContain(`in this order: ${stepNames.join(', ')}.`)
  })

  test('lists every setting that a preset stores, and no other', () => {
    const listed = sectionOf('presets', 'Versions').match(/in\s+total:([\s\S]*?)\n\n/)?.[1]
    expect(namesIn(listed)).toEqual(configKeys)
  })

  test('lists every command and subcommand, and no other', async () => {
    const listed = rowsOf(sectionOf('administration', 'Commands')).flatMap(([cell]) =>
      namesIn(cell).flatMap((name) => {
        const [group = '', subcommands] = name.replaceAll('\\|', '|').split(' ')
        return subcommands === undefined ? [group] : subcommands.split('|').map((each) => `${group} ${each}`)
      }),
    )
    const groups = await findCommands()
    const names = groups.flatMap((made) => {
      const subcommands = shownIn(made).map((child) => `${made.name()} ${child.name()}`)
      return subcommands.length > 0 && !listed.includes(made.name()) ? subcommands : [made.name(), ...subcommands]
    })
    expect(listed.toSorted()).toEqual(names.toSorted())
  })

  test('is printed no wider than asked for, code and long words apart', () => {
    for (const text of topics.values()) {
      const lines = renderMarkdown(text, 80, (heading) => heading).split('\n')
      const wide = lines.filter((line) => line.length > 80 && !line.startsWith('    ') && line.trim().includes(' '))
      expect(wide).toEqual([])
    }
  })

  test('has no code inside a list, which would be printed as text', () => {
    expect([...topics].filter(([, text]) => /^ +```/m.test(text)).map(([name]) => name)).toEqual([])
  })

  test('has each step of a numbered list on its own line', () => {
    const text = 'Do this:\n\n1. Stop the `server`.\n2. Start it, and wait\n   for it.\n\nDone.'
    const printed = renderMarkdown(text, 20, (heading) => heading)
    expect(printed).toBe('Do this:\n\n1. Stop the server.\n2. Start it, and\n   wait for it.\n\nDone.')
  })

  test('is printed by topic, and a word that is neither topic nor command is wrong usage', async () => {
    const printed = await runCommand(['help', 'glossary'], { cwd: import.meta.dirname })
    expect(printed).toEqual({ code: 0, stdout: expect.stringMatching(/^GLOSSARY\n\nterm +meaning\n/), stderr: '' })
    const both = await runCommand(['help', 'policies'], { cwd: import.meta.dirname })
    expect(both.stdout).toMatch(/^Usage: latchkey policies[\s\S]*POLICIES AND CONDITIONS/)
    const unknown = await runCommand(['help', 'nowhere'], { cwd: import.meta.dirname })
    expect(unknown).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining('"nowhere" is neither a command') })
  })

  test('names no command or option that does not exist', async () => {
    const groups = await findCommands()
    const pages = [readReadme(), ...topics.values()]
    const lines = pages.flatMap((text) =>
      [...text.replaceAll('\\\n', ' ').matchAll(/(?<!-[a-z] |[/\w])latchkey ([a-z-][^\n`#>;)]*)/g)].map(
        (match) => match[1] ?? '',
      ),
    )
    expect(lines.length).toBeGreaterThan(80)
    expect(lines.filter((line) => !isCommandLine(line, groups))).toEqual([])
  })

  test('names no option alone that no command has', async () => {
    const commands = (await findCommands()).flatMap((group) => [group, ...group.commands])
    const known = [...optionsOfAll, ...commands.flatMap(({ options }) => options.map(({ long }) => long))]
    const named = [readReadme(), ...topics.values()].flatMap((text) =>
      [...text.matchAll(/`(--[a-z][a-z-]*)[^`]*`/g)].map((match) => match[1] ?? ''),
    )
    expect(named.length).toBeGreaterThan(25)
    // `--lifetime` is an option of buildkite-agent.
    expect(named.filter((option) => option !== '--lifetime' && !known.includes(option))).toEqual([])
  })
})

const optionsOfAll = ['--help', '--json', '--config', ...settings.map(({ env }) => `--${flagOf(env)}`)]

/** Whether the words after `latchkey` are a command with options that it has. */
function isCommandLine(line: string, groups: Command[]): boolean {
  const words = line
    .replace(/^--config \S+ /, '')
    // What follows is the command that `exec` runs.
    .replace(/ -- .*/, '')
    .split(/\s+/)
    .filter((word) => word !== '')
  const group = groups.find((made) => made.name() === words[0])
  if (group === undefined) return false
  if (group.name() === 'help') return words.length > 1
  const child = group.commands.find((made) => made.name() === words[1])
  // These do something without a subcommand.
  const isWhole = child !== undefined || words.length === 1 || ['archive', 'audit', 'usage'].includes(group.name())
  const known = [group, child].flatMap((made) => made?.options.map(({ long }) => long) ?? [])
  const options = words.filter((word) => word.startsWith('--')).map((word) => word.split('=', 1)[0] ?? '')
  return (
    (isWhole || group.commands.length === 0) &&
    options.every((option) => known.includes(option) || optionsOfAll.includes(option))
  )
}
