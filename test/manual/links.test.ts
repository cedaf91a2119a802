// Where the documents point: files by link or by path, sections by name, and pages of the manual all exist.
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { loadProgram } from '../../scripts/latchkey.ts'
import { topics } from '../../src/manual/topics.ts'
import { codeUnder, sectionsOf } from '../support/manual.ts'

const root = join(import.meta.dirname, '../..')
const pages = ['*.md', 'src/**/*.md', 'db/**/*.md'].flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(root)])
const textOf = (page: string) => readFileSync(join(root, page), 'utf8')
/** The lines of a section, up to the next one of its level. */
const sectionOf = (page: string, heading: string) =>
  (textOf(page).split(`\n## ${heading}\n`)[1] ?? '').split('\n## ')[0]?.split('\n') ?? []
const found = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map((match) => match[1] ?? '')

test('every relative link leads to a file', () => {
  const links = pages.flatMap((page) =>
    found(textOf(page), /\]\((?!https?:)([^)#]+)\)/g).map((link) => join(dirname(page), link)),
  )
  expect(links.length).toBeGreaterThan(15)
  expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([])
})

test('every source file that a README names exists', () => {
  for (const folder of ['src', 'db']) {
    const names = found(textOf(`${folder}/README.md`), /`([\w./-]+\.ts)`/g)
    expect(names.length).toBeGreaterThan(2)
    const isMissing = (name: string) => ![folder, '.'].some((base) => existsSync(join(root, base, name)))
    expect(names.filter(isMissing)).toEqual([])
  }
})

test('the table of where to find what has at least 25 rows, and every path in it exists', () => {
  const rows = sectionOf('src/README.md', 'Find it')
    .filter((line) => line.startsWith('| '))
    .slice(1)
  expect(rows.length).toBeGreaterThanOrEqual(25)
  const paths = rows.map((row) => found(row.split(' | ')[1] ?? '', /`([\w-]+(?:\/[\w.-]*|\.ts)+)`/g))
  expect(paths.filter((some) => some.length === 0)).toEqual([])
  expect(paths.flat().filter((path) => !['src', '.'].some((base) => existsSync(join(root, base, path))))).toEqual([])
})

test('the page on the code can be read in one go, and leads to the page for contributors', () => {
  expect(textOf('src/README.md').split('\n').length).toBeLessThanOrEqual(161)
  for (const page of ['README.md', 'src/README.md']) expect(textOf(page)).toContain('contributing.md)')
})

test('each decision has a date, its alternatives and its consequences, and is listed', () => {
  const files = [...new Bun.Glob('*.md').scanSync(join(root, 'src/decisions'))].filter((file) => file !== 'README.md')
  expect(files.length).toBeGreaterThan(50)
  const list = textOf('src/decisions/README.md')
  for (const file of files) {
    const date = file.slice(0, 10)
    const parts = ['Context', 'Decision', 'Alternatives', 'Consequences'].map((part) => `\\*\\*${part}\\.\\*\\* .+`)
    expect(textOf(`src/decisions/${file}`)).toMatch(new RegExp(`^# .+\n\n${date}\n\n${parts.join('\n\n')}\n$`))
    expect(list).toContain(`| ${date} | [`)
    expect(list).toContain(`](${file})`)
  }
})

test('the glossary has each term once, in order', () => {
  const terms = found(textOf('src/manual/glossary.md'), /^\| ([\w() -]+) \| /gm).slice(1)
  expect(terms.length).toBeGreaterThan(30)
  expect(terms).toEqual([...new Set(terms)].toSorted((one, other) => one.localeCompare(other)))
})

test('the table of commands in README has every command', async () => {
  const named = sectionOf('README.md', 'Commands').flatMap((line) =>
    found(line.split(' | ')[0] ?? '', /`([\w-]+)[^`]*`/g),
  )
  const commands = (await loadProgram(['help'])).commands.map((command) => command.name())
  expect(commands.length).toBeGreaterThan(30)
  expect(commands.filter((name) => !named.includes(name))).toEqual([])
})

test('the map of the code names every room of src and every file outside of one, and no other room', () => {
  const map = codeUnder('Map', '', textOf('src/README.md'))
  const source = map.slice(map.indexOf('src/'), map.indexOf('\ndb/'))
  const files = [...new Bun.Glob('**/*.ts').scanSync(join(root, 'src'))]
  const rooms = new Set(files.flatMap((file) => dirname(file).split('/')).filter((room) => room !== '.'))
  expect([...new Set(found(source, /^ +([\w-]+)\/ /gm))].toSorted()).toEqual([...rooms].toSorted())
  const loose = files.filter((file) => !file.includes('/'))
  expect(loose.filter((file) => !source.includes(file))).toEqual([])
})

test('every section that the reference refers to is in it', () => {
  const headings = sectionsOf('reference').map(({ heading }) => heading)
  const named = found(topics.get('reference') ?? '', /\bsee ([A-Z][a-z]*(?: [a-z]+)*)/g)
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((name) => !headings.includes(name))).toEqual([])
})

test('every page of the manual that a page sends its reader to exists', () => {
  const named = pages.flatMap((page) => found(textOf(page), /`latchkey help ([a-z-]+)`/g))
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !topics.has(name))).toEqual([])
})
