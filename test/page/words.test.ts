// Texts that commands and the page share name no command on the page, and do not speak of the page as of another place.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Glob } from 'bun'
import { lintRules } from '../../src/federation/lint/rules.ts'
import { readMarkdown } from '../../src/manual/markdown.ts'
import { topics } from '../../src/manual/topics.ts'

// Not a path that TypeScript follows: the page has its own types.
const { withoutCommands, adviceOf, changeText, refusalWords, refusalText } = (await import(
  `${import.meta.dirname}/../../src/page/assets/words.js`
)) as {
  withoutCommands: (text: string) => string
  refusalWords: Record<string, string>
  refusalText: (reason: string) => string
  changeText: (before: object | null, after: object | null) => string
  adviceOf: (action: string) => { words: string; topics: string[] }
}

const ofReasons = readMarkdown(topics.get('troubleshooting') ?? '')
  .flatMap((block) => (block.kind === 'table' ? block.rows.slice(1) : []))
  .flatMap(([reason = '', , what = '']) => (what === '' ? [] : [[reason, what] as const]))
const ofRules = Object.entries(lintRules).map(([name, { fix }]) => [name, fix] as const)

test.each([...ofReasons, ...ofRules])('the advice about %s is an action', (_, text) => {
  const shown = withoutCommands(text)
  expect(shown).not.toMatch(/latchkey |admin page|`--allow|\(\)| [.,:]/)
  expect(shown).toMatch(/^[A-Z`].*\.$/s)
})

test('advice keeps what is no command', () => {
  expect(withoutCommands('Resume it (`latchkey policies enable`, or wait), then (soon) `has(x)`.')).toBe(
    'Resume it, then (soon) `has(x)`.',
  )
})

test.each([
  ['latchkey serve, or start the service', '', []],
  ['Run: latchkey audit checkpoint; if it does not end, the database is slow', '', []],
  ['Read the log at archive_failed, then run: latchkey archive', 'Read the log at archive_failed', []],
  ['Get the new one and set it with: latchkey issuers update ISSUER', 'Get the new one and set it', []],
  ['Upgrade the others: latchkey help cluster', 'Upgrade the others', ['cluster']],
  ['Restore it, or see: latchkey help disaster', 'Restore it', ['disaster']],
  [
    'Make sure that they can be restored: latchkey help cluster, latchkey help availability',
    'Make sure that they can be restored',
    ['cluster', 'availability'],
  ],
  ['Synchronize the clocks of the nodes (NTP)', 'Synchronize the clocks of the nodes (NTP)', []],
])('of the advice %s, the page shows the words and links the manual', (action, words, named) => {
  expect(adviceOf(action)).toEqual({ words, topics: named })
})

test.each([
  [null, { name: 'ci' }, 'Created'],
  [{ name: 'ci' }, null, 'Deleted'],
  [{ name: 'ci' }, { name: 'ci' }, 'Nothing differs'],
  [{ enabled: true, name: 'ci' }, { enabled: false, name: 'ci' }, 'enabled: on → off'],
  [{ limit_reset: null }, { limit_reset: 'daily' }, 'limit reset: none → daily'],
  [{ previous_until: 0 }, { previous_until: 1_795_867_525_642 }, 'previous until: none → 2026-11-28 12:05:25 UTC'],
  [{ expires_at: null }, { expires_at: 1_795_867_525_642 }, 'expires at: none → 2026-11-28 12:05:25 UTC'],
  [{ max_token_age: 1 }, { max_token_age: 0 }, 'max token age: 1 → 0'],
  [{ models: ['a'] }, { models: ['a', 'b'] }, 'models: ["a"] → ["a","b"]'],
  [{}, { condition: 'x'.repeat(41) }, `condition: none → ${'x'.repeat(40)}…`],
  [{ a: 1, b: 1, c: 1, d: 1 }, { a: 2, b: 2, c: 2, d: 2 }, 'a: 1 → 2; b: 1 → 2; c: 1 → 2; 1 more'],
])('the change from %j to %j reads as what it did', (before, after, text) => {
  expect(changeText(before, after)).toBe(text)
})

test('each refusal that has words is one of a request, and another reads as its name', () => {
  const rooms = ['keys', 'inference', 'spending', 'presets'].map((room) => `${import.meta.dirname}/../../src/${room}`)
  const sources = rooms.flatMap((room) =>
    [...new Glob('**/*.ts').scanSync(room)].map((path) => readFileSync(`${room}/${path}`, 'utf8')),
  )
  const isReason = (name: string) => sources.some((source) => source.includes(`reason: '${name}'`))
  expect(Object.keys(refusalWords).filter((name) => !isReason(name))).toEqual([])
  expect(refusalText('body_too_large')).toBe('Body too large')
})
