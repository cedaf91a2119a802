// `latchkey __complete WORD...`, which shells run for each completion: prints what the last word may become. It never fails,
// and it never waits long.
import type { Command } from 'commander'
import { askServer } from '../../src/admin/transport/client.ts'
import { topics } from '../../src/manual/topics.ts'
import { socketPathFor } from '../../src/settings/config.ts'
import { type Options, readConfig } from './command-line.ts'
import { type NamedKind, type Suggestion, suggest } from './suggestions.ts'

const serverMillisecondsMax = 500

const listings: Readonly<Record<NamedKind, string>> = {
  key: 'keys.list',
  policy: 'policies.list',
  issuer: 'issuers.list',
  preset: 'presets.list',
  upstream: 'upstreams.list',
  organization: 'organizations.list',
  workspace: 'workspaces.list',
}

/** Prints `files`, or `words` and then a line of value, tab and description for each suggestion. Ends the process. */
export async function complete(program: Command, words: readonly string[]): Promise<never> {
  const last = words.at(-1) ?? ''
  const found = suggest(program, words, [...topics.keys()])
  if (found === 'files') return end('files')
  const all = 'words' in found ? found.words : await findNames(found.names, words)
  const fitting = all.filter(({ value }) => value.startsWith(last))
  return end(['words', ...fitting.map(lineOf)].join('\n'))
}

function lineOf({ value, description = '' }: Suggestion): string {
  return `${value}\t${description.split('\n', 1)[0]}`
}

/** Without a server that responds at once, there are no names. */
async function findNames(kind: NamedKind, words: readonly string[]): Promise<Suggestion[]> {
  const timeout = new Promise<undefined>((resolve) => setTimeout(resolve, serverMillisecondsMax))
  try {
    const config = readConfig(optionsIn(words))
    const organization = valueAfter(words, '--organization')
    const input = organization === undefined || ['upstream', 'organization'].includes(kind) ? {} : { organization }
    const response = await Promise.race([askServer(socketPathFor(config), listings[kind], input), timeout])
    const { data = [] } = (response?.result ?? {}) as { data?: { name?: string; slug?: string }[] }
    return data.map(({ name, slug }) => ({ value: slug ?? name ?? '', description: kind }))
  } catch {
    return []
  }
}

/** The options that say which server is meant. */
function optionsIn(words: readonly string[]): Options {
  return { config: valueAfter(words, '--config'), databaseUrl: valueAfter(words, '--database-url') }
}

function valueAfter(words: readonly string[], flag: string): string | undefined {
  const index = words.slice(0, -1).indexOf(flag)
  const joined = words.find((word) => word.startsWith(`${flag}=`))
  return index === -1 ? joined?.slice(flag.length + 1) : words[index + 1]
}

function end(text: string): Promise<never> {
  return new Promise(() => {
    // A name that arrives after the time is up must not keep the process alive.
    process.stdout.write(`${text}\n`, () => process.exit(0))
  })
}
