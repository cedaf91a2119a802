// On an issuer that everyone can have tokens of, a policy is saved only if the linter follows that it names its tenant.
import { describe, expect, test } from 'bun:test'
import { lintRules } from '../../../src/federation/lint/rules.ts'
import { isAccepted } from '../../../src/federation/lint/witness.ts'
import { findingsOf, type PolicyRow, policyOf } from './linting.ts'

const owner = 'claims.repository_owner'
/** Each accepted tokens of strangers. */
const dangerous: [issuer: 'github' | 'gitlab' | 'google' | 'terraform' | 'buildkite', condition: string][] = [
  ['github', `${owner}.startsWith("acme") && !${owner}.contains("-")`],
  ['github', `size(${owner}) <= 8`],
  ['github', `"acme,initech".contains(${owner})`],
  ['github', `${owner} >= "acme" && ${owner} < "acmf"`],
  ['github', `string(${owner}).startsWith("acme")`],
  ['github', `(${owner} + "/").startsWith("ac")`],
  ['github', `(has(claims.environment) ? claims.environment : "none") == "none"`],
  ['github', `${owner} == "acme" ? true : claims.runner_environment == "github-hosted" && size(${owner}) > 4`],
  ['github', `[${owner}].exists(o, o.startsWith("acme"))`],
  ['github', `[${owner}].filter(o, o.startsWith("acme")).size() == 1`],
  ['github', `[${owner}].map(o, o + "/").exists(o, o.startsWith("acme"))`],
  ['github', 'claims.nbf < claims.iat'],
  ['github', 'int(claims.run_id) > 10000000000'],
  ['github', 'int(claims.repository_owner_id) >= 162148032'],
  ['github', `int(${owner}) == 123`],
  ['github', 'claims.groups.all(g, g == "x")'],
  ['github', `"acme".contains(${owner})`],
  ['github', 'claims.ref == "refs/heads/" + claims.workflow'],
  ['github', 'claims.workflow_ref == claims.repository + "/.github/workflows/ci.yml@" + claims.ref'],
  ['github', `!(${owner} + "/x").startsWith("mallory/")`],
  // Strangers have names that are pieces of the text: the owner `labs`, the project 23.
  ['github', `claims.environment + "-" + ${owner} == "main-acme-labs"`],
  ['gitlab', 'claims.pipeline_id + "1" + claims.project_id == "11123"'],
  ['gitlab', 'size(claims.namespace_path) == 4'],
  ['gitlab', '(claims.project_path + ":x").contains("acme/app")'],
  ['google', 'string(claims.email_verified).startsWith("f")'],
  ['terraform', '[claims.terraform_organization_name].exists(o, o.contains("acme"))'],
  ['buildkite', 'claims.organization_slug > "acm"'],
]

const blockingOf = (row: PolicyRow) => findingsOf(row).filter(({ level }) => level === 'blocking')

describe('on a shared issuer', () => {
  test.each(dangerous)('%s: %s is refused with the token of a stranger', (issuer, condition) => {
    const row: PolicyRow = { issuer, condition }
    const { witness = {} } = blockingOf(row).find((found) => found.witness !== undefined) ?? {}
    expect(isAccepted(policyOf(row), witness)).toBe(true)
    expect(Object.values(witness)).not.toContain('acme')
    expect(Object.values(witness)).not.toContain('initech')
    expect(findingsOf(row)).toEqual(findingsOf(row))
  })

  test('what is not decided names the suspicion and the ways out', () => {
    const [found, ...others] = blockingOf({ issuer: 'github', condition: `${owner} + claims.repository_id == "acme1"` })
    expect(found).toMatchObject({ rule: 'not-decided', detail: 'shared-no-tenant' })
    expect(others).toEqual([])
    expect(lintRules['not-decided'].fix).toContain('`==`')
    expect(lintRules['not-decided'].fix).toContain('--allow not-decided --because')
  })

  test.each([
    `claims.repository_owner_id == "1" && size(${owner}) <= 8`,
    `${owner} in ["acme", "initech"] && [${owner}].filter(o, o.contains("a")).size() == 1`,
    '"1" == claims.repository_id && (claims.ref + "/").startsWith("refs/heads/release/")',
    `claims.repository == "acme/app" && int(claims.run_attempt) < 3 && claims.nbf <= claims.iat`,
    `int(claims.repository_owner_id) == 162148032`,
    `string(claims.repository_id) == "1" && string(claims.ref).startsWith("refs/tags/")`,
    `"repo:" + claims.repository == "repo:acme/app"`,
    `(claims.repository + ":").startsWith("acme/app:")`,
    `(" " + ${owner} + " ") in [" acme ", " initech "]`,
    `["acme", "initech"].map(o, "repo:" + o + "/").exists(p, subject.startsWith(p))`,
    `["acme", "initech"].filter(o, o == ${owner}).size() == 1`,
    `["acme", "initech"].filter(o, o == ${owner}).filter(o, o != "initech").size() == 1`,
    '["main", "dev"].filter(b, claims.repository_id == "1").filter(b, b != "dev").exists(b, claims.ref == b)',
    `["acme"].exists_one(o, o == ${owner})`,
    `[${owner}, claims.ref] == ["acme", "refs/heads/main"]`,
    `${owner} in {"acme": 1, "initech": 2}`,
    `{"acme/app": "refs/heads/main", "acme/lib": "refs/heads/dev"}[claims.repository] == claims.ref`,
    `(claims.ref == "refs/heads/main" ? "acme" : "initech") == ${owner}`,
    'claims.workflow_ref == "acme/app/.github/workflows/deploy.yml@" + claims.ref',
    '("acme/app/" + claims.ref) == claims.workflow_ref',
    '[{"r": "acme/app", "e": "prod"}, {"r": "acme/lib", "e": "rel"}].exists(p, p.r == claims.repository && p["e"] == claims.environment)',
    'claims.repository_owner_id + "/" + claims.repository_id == "1/2"',
    `claims.environment + ":" + ${owner} in ["production:acme", "test:acme"]`,
    'subject.startsWith("repo:acme/app:environment:" + claims.environment)',
    `[["1", "push"], ["2", "release"]].exists(p, p[0] == claims.repository_id && p[1] == claims.event_name)`,
    `[["1", "push"], ["2", "release"]].exists(p, p == [claims.repository_id, claims.event_name])`,
  ])('a tenant beside a part that is not followed is enough: %s', (condition) => {
    expect(blockingOf({ issuer: 'github', condition })).toEqual([])
  })
})

test('on an issuer of your own, what is not decided is a warning', () => {
  const rules = findingsOf({ issuer: 'enterpriseServer', condition: 'claims.repository == claims.wanted' })
  expect(rules.filter(({ rule }) => rule === 'not-proven-narrow').length).toBe(1)
  expect(rules.filter(({ level }) => level === 'blocking')).toEqual([])
})

describe('what the linter follows', () => {
  test('an empty list satisfies all(): it is the example', () => {
    const [found] = blockingOf({ issuer: 'github', condition: 'claims.groups.all(g, g == "x")' })
    expect(found?.rule).toBe('shared-no-tenant')
    expect(found?.witness).toMatchObject({ groups: [] })
  })

  test('beyond the bound, what only some alternatives name does not count as named', () => {
    const named = ['x', 'y'].map((a) => `claims.repository_id=="1"&&claims.a=="${a}"`)
    const others = Array.from({ length: 64 }, (_, i) => `claims.a=="${i}"&&claims.b==1`)
    const findings = findingsOf({ issuer: 'github', condition: [...named, ...others].join('||') })
    expect(findings.some(({ rule, detail }) => rule === 'shared-no-tenant' || detail === 'shared-no-tenant')).toBe(true)
    expect(JSON.stringify(findings)).not.toContain('github-any-ref')
  })

  test('each value of a list must name the tenant', () => {
    const [found] = blockingOf({ issuer: 'github', condition: 'claims.repository in ["acme/app", "other"]' })
    expect(found?.level).toBe('blocking')
  })

  test('what is not less is equal or more', () => {
    const row: PolicyRow = { issuer: 'github', condition: '!(claims.n < 5) && claims.n == 5' }
    expect(blockingOf(row).map(({ rule }) => rule)).toEqual(['shared-no-tenant'])
    expect(blockingOf(row)[0]?.witness).toMatchObject({ n: 5 })
    expect(findingsOf(row).map(({ rule }) => rule)).not.toContain('dead')
  })
})
