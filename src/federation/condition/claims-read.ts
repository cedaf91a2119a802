// Which claims a condition reads, from its syntax tree. It evaluates nothing.
import type { ASTNode } from '@marcbachmann/cel-js'
import { childrenOf } from './explanation.ts'

/** `readsAll`: the condition also reads claims that it does not name, as `size(claims)` does. */
export type ClaimsRead = { names: ReadonlySet<string>; readsAll: boolean }

/** Returns the outermost claims that a condition reads through `claims`. */
export function claimsReadBy(ast: ASTNode): ClaimsRead {
  const names = new Set<string>()
  let readsAll = false
  const collect = (node: ASTNode): void => {
    const name = claimNamedBy(node)
    if (name !== undefined) names.add(name)
    else if (isClaims(node)) readsAll = true
    else for (const child of childrenOf(node)) collect(child)
  }
  collect(ast)
  return { names, readsAll }
}

/** The claim of `claims.x`, `claims["x"]` and `"x" in claims`. */
function claimNamedBy(node: ASTNode): string | undefined {
  if (node.op === '.') return isClaims(node.args[0]) ? node.args[1] : undefined
  if (node.op !== '[]' && node.op !== 'in') return undefined
  const [map, name] = node.op === '[]' ? node.args : [node.args[1], node.args[0]]
  return isClaims(map) && name.op === 'value' && typeof name.args === 'string' ? name.args : undefined
}

function isClaims(node: ASTNode): boolean {
  return node.op === 'id' && node.args === 'claims'
}
