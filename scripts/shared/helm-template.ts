// Renders the constructs of Helm templates that our chart uses, so that the plain manifests come from the chart. It knows no manifest.
import { stringify } from 'yaml'

type Scope = { dot: unknown; root: object; names: Readonly<Record<string, unknown>> }
type Block = { word: string; names: string[]; expression: string; body: Part[]; other: Part[] }
type Part = string | { expression: string } | Block

/** Renders a template as `helm template` would, for a release with the name `latchkey`. @throws for a construct that it does not know */
export function renderTemplate(template: string, values: object, chart: { AppVersion: string }): string {
  const root = { Values: values, Release: { Name: 'latchkey' }, Chart: chart }
  // A dash removes the white space before the braces.
  const pieces = template.replaceAll(/\s*\{\{-/g, '{{').split(/(\{\{[^}]*\}\})/)
  return renderAll(parse(pieces).parts, { dot: root, root, names: {} })
}

/** Takes the pieces up to the end of a block. */
function parse(pieces: string[]): { parts: Part[]; end: string } {
  const parts: Part[] = []
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    if (!piece.startsWith('{{')) {
      parts.push(piece)
      continue
    }
    const text = piece.slice(2, -2).trim()
    if (text === 'end' || text === 'else') return { parts, end: text }
    const [, word, names = '', expression = ''] = /^(if|with|range) (?:(\$\w+, \$\w+) := )?(.*)$/.exec(text) ?? []
    if (word === undefined) parts.push({ expression: text })
    else {
      const { parts: body, end } = parse(pieces)
      parts.push({ word, names: names.split(', '), expression, body, other: end === 'else' ? parse(pieces).parts : [] })
    }
  }
  return { parts, end: '' }
}

function renderAll(parts: readonly Part[], scope: Scope): string {
  return parts.map((part) => render(part, scope)).join('')
}

function render(part: Part, scope: Scope): string {
  if (typeof part === 'string') return part
  if (!('word' in part)) return String(evaluate(part.expression, scope))
  const value = evaluate(part.expression, scope)
  if (isEmpty(value)) return renderAll(part.other, scope)
  if (part.word === 'if') return renderAll(part.body, scope)
  if (part.word === 'with') return renderAll(part.body, { ...scope, dot: value })
  const [keyName = '', valueName = ''] = part.names
  return Object.entries(value as object)
    .map(([key, dot]) => renderAll(part.body, { ...scope, dot, names: { [keyName]: key, [valueName]: dot } }))
    .join('')
}

function isEmpty(value: unknown): boolean {
  return !value || (typeof value === 'object' && Object.keys(value).length === 0)
}

function evaluate(expression: string, scope: Scope): unknown {
  const [first = '', ...pipes] = expression.split(' | ')
  return pipes.reduce(
    (value, pipe) => {
      const [name = '', argument = ''] = pipe.split(/ (.*)/)
      if (name === 'quote') return JSON.stringify(String(value))
      if (name === 'default') return isEmpty(value) ? operand(argument, scope) : value
      if (name === 'nindent') return `\n${String(value).replaceAll(/^/gm, ' '.repeat(Number(argument)))}`
      throw new Error(`The chart uses ${name}, which is unknown here`)
    },
    operand(first, scope),
  )
}

function operand(text: string, scope: Scope): unknown {
  const [, word, rest = ''] = /^(not|toYaml|required "[^"]*") (.*)$/.exec(text) ?? []
  if (word === 'not') return isEmpty(operand(rest, scope))
  if (word === 'toYaml') return stringify(operand(rest, scope)).trimEnd()
  if (word !== undefined) return operand(rest, scope)
  if (text.startsWith('"')) return JSON.parse(text) as unknown
  if (text === '.') return scope.dot
  if (text in scope.names) return scope.names[text]
  const path = /^\.(\w+(?:\.\w+)*)$/.exec(text)?.[1]
  if (path === undefined) throw new Error(`The chart uses ${text}, which is unknown here`)
  return path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], scope.root)
}
