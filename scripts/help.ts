// `latchkey help`: the help of a command, however deep it is, or a topic of the manual.
import { Command } from 'commander'
import { Fault } from '../src/fault.ts'
import { topics } from '../src/manual/topics.ts'
import { print } from './shared/command-line.ts'
import { renderMarkdown } from './shared/markdown.ts'
import { paint, readTerminal } from './shared/terminal.ts'

/** Longer lines are hard to read. */
const widthMax = 100

export function helpCommand(): Command {
  const made = new Command('help')
    .argument('[command or topic...]')
    .description('Show the help of a command, or a topic of the manual')
    .addHelpText('after', `\nTopics of the manual: ${[...topics.keys()].join(', ')}`)
  return made.action((words: string[]) => {
    const text = words.length === 1 ? topics.get(words[0] ?? '') : undefined
    const command = findCommand(made.parent as Command, words)
    if (command !== undefined) command.outputHelp()
    // A topic may share its name with a group of commands, whose help comes first.
    if (text !== undefined) print(`${command === undefined ? '' : '\n'}${renderTopic(text)}`)
    if (command === undefined && text === undefined) throw unknownWords(words)
  })
}

function findCommand(program: Command, words: string[]): Command | undefined {
  let found: Command | undefined = program
  for (const word of words)
    found = found?.commands.find((candidate) => candidate.name() === word || candidate.aliases().includes(word))
  return found
}

function renderTopic(text: string): string {
  const terminal = readTerminal()
  const width = Math.min(terminal.columns ?? widthMax, widthMax)
  // Without bold text, capitals mark the headings.
  return renderMarkdown(text, width, (heading) =>
    terminal.hasColor ? paint(heading, 'bold', terminal) : heading.toUpperCase(),
  )
}

function unknownWords(words: string[]): Fault {
  const named = JSON.stringify(words.join(' '))
  return new Fault(
    'usage',
    `${named} is neither a command nor a topic; latchkey --help lists the commands, latchkey help help the topics`,
  )
}
