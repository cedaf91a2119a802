// The language of the documents: no page uses a word or phrase that the list of banned ones has.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bannedPhrases, findBannedPhrases } from '../support/banned-words.ts'

const root = join(import.meta.dirname, '../..')
const pages = ['*.md', 'src/**/*.md', 'db/**/*.md', 'scripts/**/*.md', 'test/**/*.md'].flatMap((pattern) => [
  ...new Bun.Glob(pattern).scanSync(root),
])

test('no page has a banned word or phrase', () => {
  expect(pages.length).toBeGreaterThan(13)
  const found = pages.flatMap((page) =>
    readFileSync(join(root, page), 'utf8')
      .split(/\n\s*\n/)
      .flatMap((paragraph) => {
        const text = paragraph.replaceAll(/\s+/g, ' ')
        return findBannedPhrases(text).map((problem) => `${page}: ${problem}, in: ${text.slice(0, 60)}`)
      }),
  )
  expect(found).toEqual([])
})

test('the list finds what it bans, and nothing in a plain sentence', () => {
  const [first] = bannedPhrases
  expect(first?.pattern.test('The error tells why')).toBe(true)
  expect(findBannedPhrases('The caller is told nothing besides an id')).toHaveLength(2)
  expect(findBannedPhrases('The error reports the line and the column')).toEqual([])
})
