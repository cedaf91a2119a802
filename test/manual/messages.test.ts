// The language of everything that the program prints or returns: no text in the code uses a phrase that the manual must not use.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findBannedPhrases } from '../support/banned-words.ts'

const root = join(import.meta.dirname, '../..')
const files = ['src/**/*.ts', 'db/**/*.ts', 'scripts/**/*.ts'].flatMap((pattern) => [
  ...new Bun.Glob(pattern).scanSync(root),
])

/** Comments, regular expressions after an operator, and the three kinds of text, in one scan so that none is taken for another. */
const tokens =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|(?<=[(=,:?&|!]\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/[a-z]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}|[^`\\])*`/g

/** The texts of a source that read as prose: several words, with what a template fills in left out. */
function textsOf(source: string): string[] {
  return [...source.matchAll(tokens)]
    .map(([token]) => token)
    .filter((token) => /^['"`]/.test(token))
    .map((token) => token.slice(1, -1).replaceAll(/\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}/g, '…'))
    .filter((text) => /[A-Za-z]{2,} [A-Za-z]{2,}/.test(text))
}

test('a text is found in every kind of quotes, and none in a comment', () => {
  const source = `
    // he said 'not this one'
    const one = 'the first text', two = "the second text"
    /* nor "this one here" */ const three = \`the \${a ? 'x' : \`y\`} third text\`
    const four = /['"] no text at all/.test(one) ? 'word' : ''`
  expect(textsOf(source)).toEqual(['the first text', 'the second text', 'the … third text'])
})

test('no message, help or description uses a phrase that the language guide bans', () => {
  expect(files.length).toBeGreaterThan(150)
  const found = files.flatMap((file) =>
    textsOf(readFileSync(join(root, file), 'utf8')).flatMap((text) =>
      findBannedPhrases(text).map((problem) => `${file}: ${problem} in: ${text}`),
    ),
  )
  expect(found).toEqual([])
})
