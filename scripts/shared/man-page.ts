// A manual page in roff (man(7)) from a tree of commands, the settings and the topics of the manual.
import type { Command, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { topics } from '../../src/manual/topics.ts'
import { settings } from '../../src/settings/settings.ts'
import { shownIn } from './command-line.ts'

/** Returns the page, without a date: equal programs have equal pages. */
export function writeManPage(program: Command): string {
  return [
    `.TH LATCHKEY 1 "" "Latchkey ${packageJson.version}" "Latchkey"`,
    '.SH NAME',
    'latchkey \\- workload identity federation and presets for self\\-hosted inference',
    '.SH SYNOPSIS',
    '.B latchkey',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    paragraph(`${program.description()}.`),
    '.PP',
    'Every command accepts \\fB\\-\\-json\\fR, \\fB\\-\\-config\\fR \\fIfile\\fR and every setting as an option.',
    '.SH COMMANDS',
    ...program.commands.flatMap(describe),
    '.SH ENVIRONMENT',
    'Each setting is also an option, and a line in the settings file.',
    ...settings.flatMap((setting) => entry(bold(setting.env), setting.help)),
    '.SH EXIT STATUS',
    ...[
      ['0', 'done'],
      ['1', 'failed'],
      ['2', 'wrong usage'],
      ['3', 'wrong configuration'],
      ['4', 'drift: what is saved differs from the document (config plan \\-\\-check)'],
    ].flatMap(([code = '', meaning = '']) => entry(bold(code), meaning)),
    '.SH SEE ALSO',
    'The manual is in the program: \\fBlatchkey help\\fR \\fItopic\\fR prints a page.',
    ...[...topics].flatMap(([name, text]) => entry(bold(name), titleOf(text))),
  ].join('\n')
}

function describe(command: Command): string[] {
  if (command.commands.length > 0 && command.registeredArguments.length === 0 && isGroup(command))
    return shownIn(command).flatMap(describe)
  const children = shownIn(command).flatMap(describe)
  const shown = command.options.filter(({ hidden, long }) => !hidden && !['--json', '--config'].includes(long ?? ''))
  return [
    `.SS ${quoted(pathOf(command))}`,
    paragraph(`${command.description()}.`),
    ...shown.flatMap((option) => entry(flagsOf(option), option.description)),
    ...children,
  ]
}

/** A group does nothing without a subcommand: it has no options but those of all commands. */
function isGroup(command: Command): boolean {
  return command.options.every(({ hidden }) => hidden)
}

function pathOf(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`
    return argument.required ? `<${name}>` : `[${name}]`
  })
  const names: string[] = []
  for (let each: Command | null = command; each !== null && each.parent !== null; each = each.parent)
    names.unshift(each.name())
  return [...names, ...words].join(' ')
}

function flagsOf({ flags }: Option): string {
  const [names = '', ...value] = flags.split(/ (?=[<[])/)
  return `${bold(names)}${value.map((each) => ` \\fI${escapeText(each)}\\fR`).join('')}`
}

function entry(term: string, text: string): string[] {
  return ['.TP', term, paragraph(text)]
}

function bold(text: string): string {
  return `\\fB${escapeText(text)}\\fR`
}

function quoted(text: string): string {
  return `"${escapeText(text).replaceAll('"', '\\(dq')}"`
}

function titleOf(topic: string): string {
  return topic.split('\n', 1)[0]?.replace(/^# /, '') ?? ''
}

function paragraph(text: string): string {
  return escapeText(text.replaceAll(/\s+/g, ' '))
}

/** A dot or an apostrophe at the beginning of a line would be a request. */
function escapeText(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(['.])/, '\\&$1')
}
