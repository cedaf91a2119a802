// Formats the commands that a command suggests to run next.
import { shellWord as quoted } from '../../src/runtime/file-access.ts'
import type { Options } from './command-line.ts'
import { printable } from './render.ts'

/** Returns those of the named flags that were given, quoted for a shell. */
export function flagsOf(options: Options, names: string[]): string {
  const flags = names.map((name) => {
    const value = options[name]
    const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    return value === undefined ? '' : ` --${flag} ${shellWord(String(value))}`
  })
  return flags.join('')
}

export function shellWord(text: string): string {
  return quoted(printable(text))
}
