// The citations in comments, held against the reference: each names a section that exists, and none names a document outside the repository.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { topics } from '../../src/manual/topics.ts'

const root = join(import.meta.dirname, '../..')
const here = 'test/manual/citations.test.ts'
const files = ['src', 'db', 'scripts', 'test']
  .flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,sql,mjs,py}`).scanSync(root)])
  .filter((file) => file !== here)

/** The comments of a file as one text, so that a citation may run over the end of a line. */
function commentsOf(file: string): string {
  const lines = readFileSync(join(root, file), 'utf8').split('\n')
  return lines.flatMap((line) => line.match(/(?:^|\s)(?:\/\/|\/?\*\*?|--|#)\s(.*)/)?.[1] ?? []).join(' ')
}

const comments = new Map(files.map((file) => [file, commentsOf(file)]))
const headings = [...(topics.get('reference') ?? '').matchAll(/^## (.+)$/gm)].map((match) => match[1] ?? '')

/** The sections that a text cites: `(reference: Policy; Claim checks)`; an RFC may stand among them. */
function citedSections(text: string): string[] {
  const citations = [...text.matchAll(/(?:\(|; )reference: ([^)]*)/g)]
  return citations.flatMap((match) => (match[1] ?? '').split('; ')).filter((name) => !name.startsWith('RFC '))
}

test('every citation names a section of the reference', () => {
  const cited = [...comments].flatMap(([file, text]) => citedSections(text).map((section) => ({ file, section })))
  expect(cited.length).toBeGreaterThan(100)
  expect(cited.filter(({ section }) => !headings.includes(section))).toEqual([])
})

test('no comment cites a document that is not in the repository', () => {
  const foreign = /\b(?:interface|decisions?)(?: §|\.md)/i
  expect([...comments].filter(([, text]) => foreign.test(text)).map(([file]) => file)).toEqual([])
})
