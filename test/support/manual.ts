// The manual as data: the sections of a topic, and the rows of the tables in them.
import { topics } from '../../src/manual/topics.ts'

export type Section = { heading: string; text: string }

/** What stands under each heading of a topic, up to the next heading of any level. */
export function sectionsOf(topic: string): Section[] {
  const parts = (topics.get(topic) ?? '').split(/^#+ /m).slice(1)
  return parts.map((part) => {
    const [heading = '', ...lines] = part.split('\n')
    return { heading, text: lines.join('\n') }
  })
}

/** The text under one heading of a topic. */
export function sectionOf(topic: string, heading: string): string {
  const section = sectionsOf(topic).find((each) => each.heading === heading)
  if (section === undefined) throw new Error(`${topic} has no section ${heading}`)
  return section.text
}

/** The rows of the tables in a text, without their titles; a cell as it was written. */
export function rowsOf(text: string): string[][] {
  const tables = text.split(/^\|[-|]+\|$/m).slice(1)
  const lines = tables.flatMap((table) => table.trim().split('\n\n', 1)[0]?.split('\n') ?? [])
  return lines.map((line) => line.slice(2, -2).split(' | '))
}

/** The words in backticks in a cell. */
export function namesIn(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')
}
