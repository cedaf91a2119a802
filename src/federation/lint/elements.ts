// The elements of a list that a condition writes out, with what filter() and map() make of them.
import type { ASTNode } from '@marcbachmann/cel-js'
import { type Expression, resolve, type Scope } from './constants.ts'

/** `guards`: the element is in the list if all of them are true. */
export type Element = Expression & { guards: readonly Expression[] }

/** Elements of one list, however it is written. */
const elementsMax = 500

/** Returns the elements of a list, or the keys of a map, or undefined if it comes from the token. */
export function elementsOf(node: ASTNode, scope: Scope): Element[] | undefined {
  const elements = readElements(node, scope)
  return elements === undefined || elements.length > elementsMax ? undefined : elements
}

function readElements(read: ASTNode, within: Scope): Element[] | undefined {
  const { node, scope } = resolve({ node: read, scope: within })
  switch (node.op) {
    case 'list':
      return node.args.map((each) => ({ node: each, scope, guards: [] }))
    case 'map':
      return node.args.map(([key]) => ({ node: key, scope, guards: [] }))
    case '+': {
      const [left, right] = node.args.map((each) => elementsOf(each, scope))
      return left === undefined || right === undefined ? undefined : [...left, ...right]
    }
    case 'rcall': {
      const [name, receiver, [variable, body, ...more]] = node.args
      if ((name !== 'filter' && name !== 'map') || variable?.op !== 'id' || body === undefined || more.length > 0)
        return undefined
      return elementsOf(receiver, scope)?.map((element) => {
        const inside = bind(scope, variable.args, element)
        return name === 'map'
          ? { node: body, scope: inside, guards: element.guards }
          : { ...element, guards: [...element.guards, { node: body, scope: inside }] }
      })
    }
    default:
      return undefined
  }
}

/** Returns the scope within a macro. */
export function bind(scope: Scope, variable: string, bound: Expression | { item: string }): Scope {
  return { ...scope, bindings: new Map([...scope.bindings, [variable, bound]]) }
}
