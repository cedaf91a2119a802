// The audit records the claims that the linter looks at, so the list of them must be whole.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ClaimName, membersOf } from '../../../src/federation/lint/atom.ts'
import type { Fact, Facts } from '../../../src/federation/lint/fact.ts'
import { issuerKinds } from '../../../src/federation/lint/issuer-kinds.ts'

const empty: Fact = {
  ...{ excluded: [], prefix: '', suffix: '', contained: [], texts: [], orders: [], items: [] },
  ...{ isPiece: false, isList: false, isPresent: false, isAbsent: false },
}
const texts = [
  'true',
  'false',
  'x',
  'refs/heads/main',
  'a/b',
  'a/b/c.yml@refs/heads/main',
  'repo:a/b:pull_request',
  'push',
]
const facts = fc.option(
  fc
    .record({ value: fc.constantFrom(...texts), isPrefix: fc.boolean() })
    .map(({ value, isPrefix }): Fact => (isPrefix ? { ...empty, prefix: value } : { ...empty, values: [value] })),
  { nil: undefined },
)

test('the checks of a kind read no claim that it does not list', () => {
  fc.assert(
    fc.property(fc.constantFrom(...issuerKinds), fc.infiniteStream(facts), (kind, answers) => {
      const { levels, checks, strangerChecks = [], checkedClaims = [] } = kind
      const listed = new Set([...levels.flatMap(({ pins }) => pins.map(({ claim }) => claim)), ...checkedClaims, 'sub'])
      const known = new Map<ClaimName, Fact | undefined>()
      const asked: Pick<Facts, 'get'> = {
        get: (claim) => {
          if (!known.has(claim)) known.set(claim, answers.next().value)
          return known.get(claim)
        },
      }
      for (const { applies } of [...checks, ...strangerChecks]) applies(asked as Facts)
      const outermost = new Set([...listed].map((claim) => membersOf(claim)[0]))
      for (const claim of known.keys()) expect([...outermost]).toContain(membersOf(claim)[0] ?? '')
    }),
    { numRuns: 1_000 },
  )
})
