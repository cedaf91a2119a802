// The manual, held against the program: what it lists is what there is.
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { renderMarkdown } from '../../scripts/shared/markdown.ts'
import { oauthErrorOf, reasonNames, stepNames, stepOf } from '../../src/federation/subject-token/refusal.ts'
import { topics } from '../../src/manual/topics.ts'
import { configKeys } from '../../src/presets/dialects/from-chat.ts'
import { settings } from '../../src/settings.ts'
import { runCommand } from '../support/latchkey.ts'

/** The words in backticks in the first column of every table of a topic. */
function namesInTables(topic: string): string[] {
  const rows = (topics.get(topic) ?? '').split('\n').filter((line) => line.startsWith('| `'))
  return rows.flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''))
}

/** What stands under each heading of a topic, of whatever level. */
function sectionsOf(topic: string): { heading: string; text: string }[] {
  const parts = (topics.get(topic) ?? '').split(/^#+ /m).slice(1)
  return parts.map((part) => {
    const [heading = '', ...lines] = part.split('\n')
    return { heading, text: lines.join('\n') }
  })
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

  test('lists every setting, and nothing else as one', () => {
    const names: string[] = settings.map(({ env }) => env)
    expect(namesInTables('configuration').toSorted()).toEqual(names.toSorted())
  })

  test('lists every reason of a refused exchange under its OAuth error, with its step and what to do', () => {
    const rows = sectionsOf('troubleshooting').flatMap(({ heading, text }) =>
      [...text.matchAll(/^\| `(\w+)` \| (\w+) \| \S.*\S \|$/gm)].map(([, reason, step]) => [reason, step, heading]),
    )
    const reasons = reasonNames.map((reason) => [reason, stepOf(reason), `\`${oauthErrorOf(reason)}\``])
    expect(rows.toSorted()).toEqual(reasons.toSorted())
  })

  test('lists the steps of an exchange in their order', () => {
    const text = (topics.get('troubleshooting') ?? '').replaceAll('\n', ' ')
    expect(text).toContain(`in this order: ${stepNames.join(', ')}.`)
  })

  test('lists every setting that a preset stores', () => {
    const text = topics.get('presets') ?? ''
    expect(configKeys.filter((key) => !text.includes(`\`${key}\``))).toEqual([])
  })

  test('lists every command', async () => {
    const { stdout } = await runCommand(['--help'], { cwd: import.meta.dirname })
    const commands = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)(?: .*)?$/gm)].map((match) => match[1] ?? '')
    const listed = namesInTables('administration').map((name) => name.split(' ')[0])
    expect(commands.length).toBeGreaterThan(15)
    expect(commands.filter((name) => !listed.includes(name))).toEqual([])
  })

  test('is printed no wider than asked for, code and long words apart', () => {
    for (const text of topics.values()) {
      const lines = renderMarkdown(text, 80, (heading) => heading).split('\n')
      const wide = lines.filter((line) => line.length > 80 && !line.startsWith('    ') && line.trim().includes(' '))
      expect(wide).toEqual([])
    }
  })

  test('is printed by topic, and a word that is neither topic nor command is wrong usage', async () => {
    const printed = await runCommand(['help', 'glossary'], { cwd: import.meta.dirname })
    expect(printed).toEqual({ code: 0, stdout: expect.stringMatching(/^GLOSSARY\n\nterm +meaning\n/), stderr: '' })
    const both = await runCommand(['help', 'policies'], { cwd: import.meta.dirname })
    expect(both.stdout).toMatch(/^Usage: latchkey policies[\s\S]*POLICIES AND CONDITIONS/)
    const unknown = await runCommand(['help', 'nowhere'], { cwd: import.meta.dirname })
    expect(unknown).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining('"nowhere" is neither a command') })
  })

  test('names no command that does not exist', async () => {
    const named = new Set(
      [...topics.values()].flatMap((text) =>
        [...text.matchAll(/latchkey ([a-z][a-z-]+) /g)].map((match) => match[1] ?? ''),
      ),
    )
    const { stdout } = await runCommand(['--help'], { cwd: import.meta.dirname })
    expect([...named].filter((name) => name !== 'latchkey' && !stdout.includes(`\n  ${name} `))).toEqual([])
  })
})
