// A condition for claims whose texts and numbers are hashed: each literal that is compared with such a claim gets its
// hash beside it. Only equality, membership and presence can be judged on hashes.
import type { ASTNode } from '@marcbachmann/cel-js'
import type { Condition } from '../condition/compile.ts'
import { prepare } from '../condition/engine.ts'
import { childrenOf } from '../condition/explanation.ts'
import { macros } from '../condition/permitted.ts'
import type { ClaimHash } from './claim-hash.ts'
import { openClaims } from './recorded-claims.ts'

/**
 * What a part of the condition can be: a value that is not hashed, one that is, the claims as a whole, or the item of
 * a macro, which is hashed in a list and is not in a map, whose items are names.
 */
type Kind = 'open' | 'hidden' | 'claims' | 'item'
type Part = { node: ASTNode; kind: Kind }
type Scope = { literals: Literals; items: ReadonlyMap<string, Kind> }
type Literals = { add: (value: string) => ASTNode; hash: ClaimHash; text: () => string }

/** Returns the condition for hashed claims, or undefined if it cannot be judged on hashes. */
export function hideCondition({ ast, source, usesClaims }: Condition, hash: ClaimHash): Condition | undefined {
  const literals = createLiterals(source, hash)
  const part = hide(ast, { literals, items: new Map() })
  if (part?.kind !== 'open') return undefined
  const evaluate = prepare(part.node, literals.text())
  return { ast: part.node, source: literals.text(), usesClaims, evaluate }
}

/** New literals stand behind the source, where the engine finds their text. */
function createLiterals(source: string, hash: ClaimHash): Literals {
  let text = source
  return {
    hash,
    text: () => text,
    add: (value) => {
      const start = text.length + 1
      text += ` ${JSON.stringify(value)}`
      return { op: 'value', args: value, start, end: text.length } as ASTNode
    },
  }
}

function hide(node: ASTNode, scope: Scope): Part | undefined {
  switch (node.op) {
    case 'value':
      return { node, kind: 'open' }
    case 'id':
      return { node, kind: node.args === 'claims' ? 'claims' : (scope.items.get(node.args) ?? 'open') }
    case '.':
    case '[]':
      return hideMember(node, scope)
    case '==':
    case '!=':
      return hideEquality(node, scope)
    case 'in':
      return hideMembership(node, scope)
    case '&&':
    case '||':
    case '!_':
      return rebuild(node, scope, ['open', 'hidden'])
    case 'call':
      return node.args[0] === 'has' ? hidePresence(node, scope) : rebuild(node, scope)
    case 'rcall':
      return macros.includes(node.args[0]) ? hideMacro(node, scope) : rebuild(node, scope)
    default:
      return rebuild(node, scope)
  }
}

/** An operation that gives the same for hashed operands only if none of its operands is hashed. */
function rebuild(node: ASTNode, scope: Scope, allowed: readonly Kind[] = ['open']): Part | undefined {
  const parts = new Map<ASTNode, ASTNode>()
  for (const child of childrenOf(node)) {
    const part = hide(child, scope)
    if (part === undefined || !allowed.includes(part.kind)) return undefined
    parts.set(child, part.node)
  }
  return { node: { ...node, args: replaceIn(node.args, parts) } as ASTNode, kind: 'open' }
}

function replaceIn(args: unknown, parts: ReadonlyMap<unknown, ASTNode>): unknown {
  return parts.get(args) ?? (Array.isArray(args) ? args.map((each) => replaceIn(each, parts)) : args)
}

function hideMember(node: ASTNode & { op: '.' | '[]' }, scope: Scope): Part | undefined {
  const object = hide(node.args[0], scope)
  const index = node.args[1]
  const name = typeof index === 'string' ? index : index.op === 'value' ? index.args : undefined
  if (object?.kind === 'open') return rebuild(node, scope)
  if (object === undefined || name === undefined) return undefined
  const isOpen = object.kind === 'claims' && [...openClaims, 'sub'].includes(String(name))
  return { node, kind: isOpen ? 'open' : 'hidden' }
}

function isHidden({ kind }: Part): boolean {
  return kind === 'hidden' || kind === 'item'
}

function hideEquality(node: ASTNode & { op: '==' | '!=' }, scope: Scope): Part | undefined {
  const [left, right] = node.args.map((each) => hide(each, scope))
  if (left === undefined || right === undefined) return undefined
  if (left.kind === 'hidden' && right.kind === 'hidden') return { node, kind: 'open' }
  const [hidden, literal] = isHidden(left) ? [left, right] : [right, left]
  if (!isHidden(hidden)) return rebuild(node, scope)
  if (literal.kind !== 'open' || literal.node.op !== 'value') return undefined
  const compared = formsOf(literal.node, scope).map(
    (form) => ({ ...node, args: [hidden.node, form] }) as ASTNode & { op: '==' | '!=' },
  )
  return { node: joined(node.op === '==' ? '||' : '&&', compared), kind: 'open' }
}

function hideMembership(node: ASTNode & { op: 'in' }, scope: Scope): Part | undefined {
  const [left, right] = node.args.map((each) => hide(each, scope))
  if (left === undefined || right === undefined) return undefined
  const [member, list] = node.args
  const isLiteral = left.kind === 'open' && member.op === 'value'
  if (right.kind === 'claims') return isLiteral ? { node, kind: 'open' } : undefined
  if (right.kind === 'hidden') {
    if (!isLiteral) return undefined
    const asked = formsOf(member, scope).map((form) => ({ ...node, args: [form, right.node] }) as ASTNode)
    return { node: joined('||', asked), kind: 'open' }
  }
  if (!isHidden(left)) return rebuild(node, scope)
  if (list.op !== 'list' || !list.args.every(({ op }) => op === 'value')) return undefined
  const forms = { ...list, args: list.args.flatMap((each) => formsOf(each, scope)) }
  return { node: { ...node, args: [left.node, forms] } as ASTNode, kind: 'open' }
}

/** A literal as it is, for names, and hashed. A name is never a number. */
function formsOf(literal: ASTNode, { literals }: Scope): ASTNode[] {
  const value: unknown = literal.args
  if (typeof value === 'string') return [literal, literals.add(literals.hash.hashOf(value))]
  const number = typeof value === 'bigint' ? Number(value) : value
  return typeof number === 'number' ? [literals.add(literals.hash.hashOf(number))] : [literal]
}

function joined(op: '||' | '&&', nodes: ASTNode[]): ASTNode {
  return nodes.reduce((left, right) => {
    const { start, end } = left
    return { op, args: [left, right], start, end } as ASTNode
  })
}

function hidePresence(node: ASTNode & { op: 'call' }, scope: Scope): Part | undefined {
  const [asked] = node.args[1]
  return asked !== undefined && hide(asked, scope) !== undefined ? { node, kind: 'open' } : undefined
}

function hideMacro(node: ASTNode & { op: 'rcall' }, scope: Scope): Part | undefined {
  const [name, receiver, [variable, ...bodies]] = node.args
  const range = hide(receiver, scope)
  if (range === undefined || range.kind === 'claims' || variable?.op !== 'id') return undefined
  const isOpen = range.kind === 'open'
  if (!isOpen && (name === 'filter' || name === 'map')) return undefined
  const inside: Scope = { ...scope, items: new Map([[variable.args, isOpen ? 'open' : 'item']]) }
  const hidden = bodies.map((body) => hide(body, inside))
  const rest: ASTNode[] = []
  for (const part of hidden) {
    if (part?.kind !== 'open') return undefined
    rest.push(part.node)
  }
  return { node: { ...node, args: [name, range.node, [variable, ...rest]] } as ASTNode, kind: 'open' }
}
