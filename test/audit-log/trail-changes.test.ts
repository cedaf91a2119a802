// The changes in a trail: what they say in words, and which are missing.
import { expect, test } from 'bun:test'
import { checkChanges, describeChange, type ProvenChange } from '../../src/audit-log/trail-changes.ts'
import type { TrailHead } from '../../src/audit-log/trail-format.ts'

const head = { issuer_id: 'idp-1', issuer_url: 'https://idp.example.com' } as TrailHead
const change = (kind: string, id: string, before: object | null, after: object | null): ProvenChange => ({
  ...{ file: `changes/${id}.tlog-proof`, index: 1, at: '', by: 'local', operation: 'x', kind, target_id: id },
  ...{ before: before as ProvenChange['before'], after: after as ProvenChange['after'] },
})
const issuer = change('issuer', 'idp-1', null, { issuer_url: 'https://idp.example.com', updated_at: 1 })
const price = (before: number | null, after: number) =>
  change('price', 'echo', before === null ? null : { updated_at: before }, { updated_at: after })
const problemsOf = (...changes: ProvenChange[]) => {
  const problems: string[] = []
  checkChanges(changes, head, (problem) => problems.push(problem))
  return problems
}
const name = (id: string) => ({ 'idp-1': 'github', 'key-1': 'ci' })[id] ?? id
const policy = {
  ...{ id: 'p', issuer_id: 'idp-1', key_id: 'key-1', audience: 'https://api', subject: 'repo:acme', updated_at: 1 },
  ...{ condition: 'claims.ref == "main"', enabled: 1, deleted_at: null },
}

test('changes that follow from each other are complete', () => {
  expect(problemsOf(issuer, price(null, 2), price(2, 3), price(3, 9))).toEqual([])
})

test.each([
  ['the first', [issuer, price(2, 3)]],
  ['one between two others', [issuer, price(null, 2), price(3, 9)]],
  ['all but one that begins anew', [issuer, price(null, 2), price(null, 3)]],
])('without %s, the next one is named', (_, changes) => {
  expect(problemsOf(...changes)).toEqual([expect.stringContaining('changes/echo.tlog-proof: the change of this price')])
})

test('the issuer must be that of the trail', () => {
  const moved = { ...issuer, after: { issuer_url: 'https://other.example.com', updated_at: 1 } }
  expect(problemsOf(moved)).toEqual([expect.stringContaining('No change in the log says that the issuer is')])
})

test('a new policy is its rule in words', () => {
  expect(describeChange(change('policy', 'p', null, policy), name)).toBe(
    'Lets in tokens of github for the audience https://api with the subject repo:acme where claims.ref == "main"; they use the key ci.',
  )
})

test('a rule says every other field that is set, whatever its name', () => {
  const strict = { ...policy, max_token_age_seconds: 60, color: 'green', description: null, hash: 'x' }
  const text = describeChange(change('policy', 'p', null, strict), name)
  expect(text).toEndWith('they use the key ci; max_token_age_seconds: 60; color: green.')
})

test('a changed policy is what differs, and its rule since then', () => {
  const text = describeChange(
    change('policy', 'p', policy, { ...policy, subject: null, enabled: 0, updated_at: 2 }),
    name,
  )
  expect(text).toStartWith('subject: repo:acme → –; enabled: 1 → 0. Since then: Lets in tokens of github')
  expect(text).toContain('with any subject')
  expect(text).toContain('it is off')
})

test('a price is its numbers, and what was deleted is deleted', () => {
  const row = { model: 'echo', prompt_nanodollars: 1_000, updated_at: 1, deleted_at: null }
  const dearer = { ...row, prompt_nanodollars: 2_000, updated_at: 2 }
  expect(describeChange(change('price', 'echo', row, dearer), name)).toBe('prompt_nanodollars: 1000 → 2000')
  expect(describeChange(change('price', 'echo', row, { ...row, deleted_at: 3 }), name)).toBe('deleted')
})
