// What may follow on a command line: commands, options, choices, or the kind of thing that is named there.
import type { Argument, Command, Option } from 'commander'
import { flagOf, settings } from '../../src/settings/settings.ts'
import { shownIn } from './command-line.ts'

/** Things that have names in a database. */
export const namedKinds = ['key', 'policy', 'issuer', 'preset', 'upstream', 'organization', 'workspace'] as const
export type NamedKind = (typeof namedKinds)[number]

export type Suggestion = { value: string; description?: string }
export type Suggestions = { words: Suggestion[] } | { names: NamedKind } | 'files'

const nothing: Suggestions = { words: [] }
const settingFlags = new Set<string>(settings.map(({ env }) => `--${flagOf(env)}`))

/**
 * Suggests what the last of these words may become; it may be empty. Words and names that do not begin with it are
 * included: the caller filters.
 */
export function suggest(program: Command, words: readonly string[], topics: readonly string[] = []): Suggestions {
  const { command, index, option, isRepeated } = walk(program, words.slice(0, -1))
  const last = words.at(-1) ?? ''
  if (option !== undefined && !(isRepeated && last.startsWith('-'))) return suggestValue(option, option.argChoices)
  if (last.startsWith('-')) return { words: command.options.filter(({ hidden }) => !hidden).map(toSuggestion) }
  const commands = shownIn(command).map((child) => ({ value: child.name(), description: child.description() }))
  if (command.name() === 'help' && index === 0)
    return {
      words: [...topLevel(program), ...topics.map((value) => ({ value, description: 'a topic of the manual' }))],
    }
  const argument = command.registeredArguments[index] ?? lastVariadic(command.registeredArguments)
  if (argument === undefined) return { words: index === 0 ? commands : [] }
  return suggestValue(argument, argument.argChoices)
}

type Place = {
  command: Command /** How many arguments precede. */
  index: number /** The option whose value follows. */
  option?: Option
  /** The option has a value already, and takes more. */
  isRepeated?: true
}

function walk(program: Command, before: readonly string[]): Place {
  let place: Place = { command: program, index: 0 }
  for (const word of before) {
    const { option, isRepeated } = place
    if (option?.variadic === true && !word.startsWith('-')) place = { ...place, isRepeated: true }
    else if (option !== undefined && isRepeated !== true) place = { ...place, option: undefined }
    else if (word.startsWith('-')) {
      const { command, index } = place
      place = { command, index, option: optionWithValue(command, word) }
    } else {
      const child = place.index === 0 ? place.command.commands.find((each) => each.name() === word) : undefined
      place = child === undefined ? { ...place, index: place.index + 1 } : { command: child, index: 0 }
    }
  }
  return place
}

function optionWithValue(command: Command, word: string): Option | undefined {
  return command.options.find((option) => (option.long === word || option.short === word) && option.required)
}

function lastVariadic(all: readonly Argument[]): Argument | undefined {
  const last = all.at(-1)
  return last?.variadic === true ? last : undefined
}

function suggestValue(place: Argument | Option, choices: readonly string[] | undefined): Suggestions {
  if (choices !== undefined) return { words: choices.map((value) => ({ value })) }
  const isOption = 'flags' in place
  const name = (isOption ? (/[<[]([^>\]]+)[>\]]/.exec(place.flags)?.[1] ?? '') : place.name()).replace('...', '')
  if (/^(?:file|dir|folder|file\|folder)$/.test(name)) return 'files'
  if (isOption && settingFlags.has(place.long ?? '')) return nothing
  const kind = namedKinds.find((each) => name === each || name === `${each}s` || name === `${each}@version`)
  return kind === undefined ? nothing : { names: kind }
}

function topLevel(program: Command): Suggestion[] {
  return program.commands.map((child) => ({ value: child.name(), description: child.description() }))
}

function toSuggestion({ long, short, description }: Option): Suggestion {
  return { value: long ?? short ?? '', description }
}
