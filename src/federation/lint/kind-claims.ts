// The claims that the linter looks at in tokens of an issuer.
import { membersOf } from './atom.ts'
import { kindOf } from './issuer-kinds.ts'

/** Returns the outermost claims. `subject` is that of a token: it distinguishes kinds that can have any URL. */
export function claimsOfKind(issuerUrl: string, subject: string): readonly string[] {
  const { levels, checkedClaims = [] } = kindOf(issuerUrl, [subject])
  const pinned = levels.flatMap(({ pins }) => pins.map(({ claim }) => claim))
  return [...new Set([...pinned, ...checkedClaims].map((claim) => membersOf(claim)[0] ?? claim))]
}
