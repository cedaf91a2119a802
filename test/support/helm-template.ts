// Renders the constructs of Helm that our chart uses, so that its manifests are checked where helm is not installed.

type Scope = { dot: unknown; names: Record<string, unknown> }
type Block = { open: string; body: Node_[]; other: Node_[] }
type Node_ = string | { text: string } | Block

/** @throws for a construct that it does not know */
export function renderTemplate(template: string, values: unknown, chart: { AppVersion: string }): string {
  const root = { Values: values, Release: { Name: 'latchkey' }, Chart: chart }
  // A dash removes the white space before the braces.
  const parts = template.replaceAll(/\s*\{\{-/g, '{{').split(/(\{\{[^}]*\}\})/)
  return renderAll(parseUntilEnd(parts).nodes, { dot: root, names: { root } })
}

function parseUntilEnd(parts: string[]): { nodes: Node_[]; end: string } {
  const nodes: Node_[] = []
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    if (!part.startsWith('{{')) {
      nodes.push(part)
      continue
    }
    const text = part.slice(2, -2).trim()
    if (text === 'end' || text === 'else') return { nodes, end: text }
    if (!/^(if|with|range) /.test(text)) nodes.push({ text })
    else {
      const { nodes: body, end } = parseUntilEnd(parts)
      nodes.push({ open: text, body, other: end === 'else' ? parseUntilEnd(parts).nodes : [] })
    }
  }
  return { nodes, end: '' }
}

function renderAll(nodes: readonly Node_[], scope: Scope): string {
  return nodes.map((node) => render(node, scope)).join('')
}

function render(node: Node_, scope: Scope): string {
  if (typeof node === 'string') return node
  if ('text' in node) return String(evaluate(node.text, scope))
  const [, word = '', names, expression = ''] = /^(if|with|range) (?:(\$\w+, \$\w+) := )?(.*)$/.exec(node.open) ?? []
  const value = evaluate(expression, scope)
  if (word === 'range') {
    const [keyName = '', valueName = ''] = names?.split(', ') ?? []
    return Object.entries(value as object)
      .map(([key, dot]) => renderAll(node.body, { dot, names: { ...scope.names, [keyName]: key, [valueName]: dot } }))
      .join('')
  }
  if (isEmpty(value)) return renderAll(node.other, scope)
  return renderAll(node.body, word === 'with' ? { ...scope, dot: value } : scope)
}

function isEmpty(value: unknown): boolean {
  return !value || (typeof value === 'object' && Object.keys(value).length === 0)
}

function evaluate(expression: string, scope: Scope): unknown {
  const [first = '', ...pipes] = expression.split(' | ')
  return pipes.reduce(
    (value, pipe) => {
      const [name, argument = ''] = pipe.split(/ (.*)/)
      if (name === 'quote') return JSON.stringify(String(value))
      if (name === 'default') return isEmpty(value) ? operand(argument, scope) : value
      // JSON is YAML.
      if (name === 'nindent') return ` ${String(value)}`
      throw new Error(`The test does not know ${pipe}`)
    },
    operand(first, scope),
  )
}

function operand(text: string, scope: Scope): unknown {
  const [, word, rest = ''] = /^(not|toYaml) (.*)$/.exec(text) ?? []
  if (word === 'not') return isEmpty(operand(rest, scope))
  if (word === 'toYaml') return JSON.stringify(operand(rest, scope))
  if (text.startsWith('"')) return JSON.parse(text) as unknown
  if (text.startsWith('$')) return scope.names[text]
  if (text === '.') return scope.dot
  const path = text.slice(1).split('.')
  const from = path.length > 0 && /^(Values|Release|Chart)$/.test(path[0] ?? '') ? scope.names.root : scope.dot
  return path.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], from)
}
