// Why a token of GitHub Actions does not fit a subject: its `sub` has ids or not, and the same names may be another repository's by now.
import { describe, expect, test } from 'bun:test'
import { explainGithubSubject } from '../../../src/federation/subject-token/github-subject.ts'

const plain = 'repo:acme/app:ref:refs/heads/main'
const withIds = 'repo:acme@123/app@456:ref:refs/heads/main'

describe('subjects of GitHub Actions that differ', () => {
  const rows: [name: string, has: string, wants: string, hint: RegExp | undefined][] = [
    [
      'only by ids that the policy lacks',
      withIds,
      plain,
      /repositories created or renamed since July 2026.*owner 123.*repository 456/,
    ],
    ['only by ids that the token lacks', plain, withIds, /does not use ids in this repository yet/],
    ['by the id of the repository', withIds, 'repo:acme@123/app@457:ref:refs/heads/main', /another repository/],
    ['by the id of the owner', withIds, 'repo:acme@124/app@456:ref:refs/heads/main', /another owner/],
    ['by the names alone, after a rename', withIds, 'repo:acme@123/old@456:ref:refs/heads/main', /was renamed/],
    ['by the owner name alone', withIds, 'repo:before@123/app@456:ref:refs/heads/main', /was renamed/],
    ['in the ref, with ids on one side', withIds, 'repo:acme/app:ref:refs/heads/other', undefined],
    ['in the name, with ids on one side', withIds, 'repo:acme/other:ref:refs/heads/main', undefined],
    ['in the ref', plain, 'repo:acme/app:environment:production', undefined],
    ['in the ref, with ids on both sides', withIds, 'repo:acme@123/app@456:pull_request', undefined],
    ['since one is not GitHub’s', withIds, 'system:serviceaccount:a:b', undefined],
    ['since neither is', 'a', 'b', undefined],
  ]
  for (const [name, has, wants, hint] of rows) {
    test(`${name}: ${hint === undefined ? 'nothing to add' : 'explained'}`, () => {
      const expected = hint === undefined ? undefined : expect.stringMatching(hint)
      expect(explainGithubSubject(has, wants)).toEqual(expected)
    })
  }
})
