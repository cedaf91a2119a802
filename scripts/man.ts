// `latchkey man`: the manual page of the program in roff, made of the same commands and settings as the help.
import type { Command } from 'commander'
import { command, givenTo, print, withSettings } from './shared/command-line.ts'
import { writeManPage } from './shared/man-page.ts'

export function manCommand(): Command {
  const made = command('man', 'Print the manual page of the program, for man', [
    'man > /usr/local/share/man/man1/latchkey.1',
    'man | man -l -',
  ])
  return withSettings(made, { shown: [] }).action((...all: unknown[]) => {
    const text = writeManPage((all.at(-1) as Command).parent ?? made)
    print(givenTo(all).options.json === true ? JSON.stringify({ text }) : text)
  })
}
