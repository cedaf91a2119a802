// Reads the manual as data: the sections of a page, the rows of its tables and its code blocks.
import { topics } from '../../src/manual/topics.ts'

export type Section = { heading: string; text: string }

/** The text under each heading of a topic, up to the next heading of any level. */
export function sectionsOf(topic: string): Section[] {
  return sectionsIn(topics.get(topic) ?? '')
}

/** The text under one heading of a topic. */
export function sectionOf(topic: string, heading: string): string {
  return sectionIn(topics.get(topic) ?? '', heading)
}

/** The first code block of a language, or of any language, under a heading of the recipes or another page. */
export function codeUnder(heading: string, language = '\\w+', page = topics.get('recipes') ?? ''): string {
  const block = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm')
  const code = sectionIn(page, heading).match(block)?.[1]
  if (code === undefined) throw new Error(`There is no code of ${language} under ${heading}`)
  return code
}

/** The rows of the tables in a text, without headers. Cells keep their markup. */
export function rowsOf(text: string): string[][] {
  const tables = text.split(/^\|[-|]+\|$/m).slice(1)
  const lines = tables.flatMap((table) => table.trim().split('\n\n', 1)[0]?.split('\n') ?? [])
  return lines.map((line) => line.slice(2, -2).split(' | '))
}

/** The words in backticks in a cell. */
export function namesIn(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')
}

function sectionIn(page: string, heading: string): string {
  const section = sectionsIn(page).find((each) => each.heading === heading)
  if (section === undefined) throw new Error(`There is no section ${heading}`)
  return section.text
}

function sectionsIn(page: string): Section[] {
  const sections: Section[] = []
  let isCode = false
  for (const line of page.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    const heading = isCode ? undefined : /^#+ (.+)$/.exec(line)?.[1]
    const last = sections.at(-1)
    if (heading !== undefined) sections.push({ heading, text: '' })
    else if (last !== undefined) last.text += `${line}\n`
  }
  return sections
}
