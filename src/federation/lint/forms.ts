// Recognizes forms of expressions that ask the same as simpler ones: conversions, counts, and other operands of a node.
import type { ASTNode } from '@marcbachmann/cel-js'
import type { ClaimName, Scalar } from './atom.ts'
import { claimOf, type Scope } from './constants.ts'

/** The claim of `string(claim)`, `int(claim)` or `double(claim)`. */
export function convertedOf(node: ASTNode, scope: Scope): { claim: ClaimName; to: 'text' | 'number' } | undefined {
  const [name, [given]] = node.op === 'call' ? node.args : ['', []]
  const claim = given === undefined || !['string', 'int', 'double'].includes(name) ? undefined : claimOf(given, scope)
  return claim === undefined ? undefined : { claim, to: name === 'string' ? 'text' : 'number' }
}

/** What string() turns into a text. */
export function textsOf(text: string): Scalar[] {
  const others: Scalar[] = [Number(text), true, false]
  return [text, ...others.filter((each) => String(each) === text)]
}

/** Returns exists() for the filter() whose size a node asks for. */
export function filterCounted(node: ASTNode): (ASTNode & { op: 'rcall' }) | undefined {
  const counted =
    node.op === 'call' && node.args[0] === 'size'
      ? node.args[1][0]
      : node.op === 'rcall' && node.args[0] === 'size'
        ? node.args[1]
        : undefined
  if (counted?.op !== 'rcall' || counted.args[0] !== 'filter') return undefined
  return replaced(counted, ['exists', counted.args[1], counted.args[2]]) as ASTNode & { op: 'rcall' }
}

export function compareNumbers(one: number, operator: string, other: number): boolean {
  if (operator === '==') return one === other
  if (operator === '!=') return one !== other
  if (operator === '<' || operator === '<=') return operator === '<' ? one < other : one <= other
  return operator === '>' ? one > other : one >= other
}

export function isNode(part: unknown): part is ASTNode {
  return typeof part === 'object' && part !== null && 'op' in part
}

/** The same node with other operands. */
export function replaced({ op, start, end }: ASTNode, args: unknown): ASTNode {
  return { op, args, start, end } as ASTNode
}
