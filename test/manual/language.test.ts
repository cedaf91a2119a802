// The language of documents, comments and names of tests: they use no word or phrase that the list of banned ones has.
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

const files = ['src/**/*.ts', 'src/page/assets/*.js', 'db/**/*.ts', 'scripts/**/*.ts', 'test/**/*.ts'].flatMap(
  (pattern) => [...new Bun.Glob(pattern).scanSync(root)],
)
/** They quote what they look for. */
const listing = ['test/support/banned-words.ts', 'test/manual/language.test.ts', 'test/manual/messages.test.ts']

/** The comments of a source, each as one line; adjacent line comments are one. */
function commentsOf(source: string): string[] {
  const comments = /\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/[^\n]*\n)+|(?<=[;{,)] )\/\/[^\n]*/gm
  return [...source.matchAll(comments)].map(([comment]) =>
    comment
      .replaceAll(/^\s*(?:\/\/|\/?\*+\/?)|\*\/$/gm, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  )
}

/** The names of tests and of their groups. */
function testNamesOf(source: string): string[] {
  const names = /\b(?:test|describe)(?:\.\w+)*\(\s*(['"`])((?:\\.|(?!\1)[\s\S])*)\1/g
  return [...source.matchAll(names)].map(([, , name = '']) => name)
}

test('a comment and the name of a test are found, and no other text', () => {
  const source = `// one\n// comment\nconst a = 'no comment' // or two\n/** and\n * three */\ntest('a name', () => {`
  expect(commentsOf(source)).toEqual(['one comment', 'and three'])
  expect(commentsOf('const a = 1; // a note')).toEqual(['a note'])
  expect(testNamesOf(source)).toEqual(['a name'])
})

test('no comment and no name of a test has a banned word or phrase', () => {
  expect(files.length).toBeGreaterThan(700)
  const found = files.flatMap((file) => {
    if (listing.includes(file)) return []
    const source = readFileSync(join(root, file), 'utf8')
    const texts = [...commentsOf(source), ...(file.startsWith('test/') ? testNamesOf(source) : [])]
    return texts.flatMap((text) => findBannedPhrases(text).map((problem) => `${file}: ${problem}, in: ${text}`))
  })
  expect(found).toEqual([])
})

test('the list finds what it bans, and nothing in a plain sentence', () => {
  const [first] = bannedPhrases
  expect(first?.pattern.test('The error tells why')).toBe(true)
  expect(findBannedPhrases('The caller is told nothing besides an id')).toHaveLength(2)
  expect(findBannedPhrases('The error reports the line and the column')).toEqual([])
})
