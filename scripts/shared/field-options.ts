// What a command says and reads about the fields of a managed kind: options, what they send, and the lines of one thing.
import { type Command, Option } from 'commander'
import type { Field, Fields, Flag } from '../../src/admin/kinds/fields.ts'
import { Fault } from '../../src/fault.ts'
import { overridesFrom, windowsFrom } from './budget-windows.ts'
import type { Options } from './command-line.ts'
import { readJsonFile, readTextFile } from './input-files.ts'
import { durationSeconds, futureText, money, removable, wholeNumber } from './option-values.ts'
import { moment } from './render.ts'

type Form = NonNullable<Flag['form']>

/** Texts that are read with the command line, and those that name what is read when it runs. */
const readers: Partial<Record<Form, (text: string) => unknown>> = {
  duration: durationSeconds,
  number: wholeNumber,
  money,
  future: futureText,
}
const contents: Partial<Record<Form, (text: string) => unknown>> = {
  'json-file': readJsonFile,
  'text-file': readTextFile,
  'yes-no': (text) => text === 'yes',
}

/** Adds the options of the fields that a new thing can have, or that a change can set and remove. */
export function fieldOptions(made: Command, fields: Fields, at: 'create' | 'change'): Command {
  for (const { flag, required, [at]: isThere } of Object.values(fields)) {
    if (flag === undefined || isThere === false) continue
    const option = new Option(flag.option, flag.says).makeOptionMandatory(at === 'create' && required === true)
    const reader = flag.form && readers[flag.form]
    if (reader !== undefined) option.argParser(reader)
    if (flag.form === 'yes-no') option.choices(['yes', 'no'])
    if (flag.choices !== undefined) option.choices(flag.choices)
    made.addOption(option)
    if (at === 'change' && flag.no !== undefined) made.option(`--no-${longOf(flag)}`, flag.no)
  }
  return made
}

/** What the options send. A field without an option is left out. */
export function fieldInput(fields: Fields, options: Options): Record<string, unknown> {
  const named = Object.entries(fields).flatMap(([name, { flag }]) =>
    flag === undefined ? [] : [[name, sentBy(flag, options)] as const],
  )
  return Object.fromEntries(named)
}

function sentBy(flag: Flag, options: Options): unknown {
  const value = options[new Option(flag.option).attributeName()]
  // An option without a value is true or false; any other is false if it was removed.
  const given = flag.option.includes(' ') ? removable(value) : value
  if (flag.form === 'pairs' && Array.isArray(given))
    return Object.fromEntries(given.map((text) => pairOf(String(text), flag)))
  if (flag.form === 'windows' && Array.isArray(given)) return windowsFrom(given.map(String))
  if (flag.form === 'overrides' && Array.isArray(given)) return overridesFrom(given.map(String))
  if (flag.form === 'numbers') return given === null ? [] : numbersFrom(given, flag)
  const read = flag.form && contents[flag.form]
  return read !== undefined && typeof given === 'string' ? read(given) : given
}

function numbersFrom(given: unknown, { option }: Flag): unknown {
  if (!Array.isArray(given)) return given
  const wrong = given.find((text) => !/^\d{1,9}$/.test(String(text)))
  if (wrong === undefined) return given.map(Number)
  throw new Fault(
    'usage',
    `${JSON.stringify(wrong)} is not a valid value for ${option.split(' ')[0]}: use whole numbers, 0 or more`,
  )
}

function pairOf(text: string, { option }: Flag): [name: string, value: string] {
  const at = text.indexOf('=')
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
  throw new Fault('usage', `${JSON.stringify(text)} is not a valid value for ${option.split(' ')[0]}: use name=value`)
}

function longOf({ option }: Flag): string {
  return new Option(option).name()
}

/** The lines of one thing. `drawn` has those that are not the value alone. */
export function fieldLines(fields: Fields, shown: object, drawn: Readonly<Record<string, unknown>> = {}) {
  const values = shown as Record<string, unknown>
  const lines = Object.entries(fields).flatMap(([name, field]) => {
    const { line } = field
    if (line === undefined) return []
    const text = name in drawn ? drawn[name] : draw(field, values[name])
    if (!line.endsWith('?')) return [[line, text]]
    return text === null || text === undefined ? [] : [[line.slice(0, -1), text]]
  })
  return Object.fromEntries(lines) as Record<string, unknown>
}

function draw({ flag, none }: Field, value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (Array.isArray(value)) return value.join(' ')
  if (value === null || value === undefined) return none ?? null
  if (flag?.form === 'pairs')
    return Object.entries(value)
      .map((pair) => pair.join('='))
      .join(' ')
  if (flag?.form === 'duration') return `${value} s`
  return flag?.form === 'future' ? moment(String(value)) : value
}
