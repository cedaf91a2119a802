// `latchkey help`: the help of a command, however deep it lies.
import { Command } from 'commander'
import { Fault } from '../src/fault.ts'

export function helpCommand(): Command {
  const made = new Command('help').argument('[command...]').description('Show the help of a command')
  return made.action((words: string[]) => {
    let found = made.parent as Command
    for (const [index, word] of words.entries()) {
      const below = found.commands.find((candidate) => candidate.name() === word)
      if (below === undefined) {
        const [named, above] = [words.slice(0, index + 1), ['latchkey', ...words.slice(0, index), '--help']]
        throw new Fault('usage', `There is no command ${JSON.stringify(named.join(' '))}; see: ${above.join(' ')}`)
      }
      found = below
    }
    found.outputHelp()
  })
}
