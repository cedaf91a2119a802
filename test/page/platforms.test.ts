// The cards of platforms: what they write passes the linter, what they read of a token is what they asked for, and a policy from a token of an
// example of `config example` decides every test of that example as the example does. So the page and the command agree.
import { describe, expect, test } from 'bun:test'
import { parse } from 'yaml'
import { examples } from '../../scripts/shared/config-examples.ts'
import { conditionEnvironment } from '../../src/federation/condition/compile.ts'
import { lintPolicy } from '../../src/federation/lint/lint.ts'
import { runPolicyTest } from '../../src/federation/policy-test.ts'
import { type Block, readMarkdown } from '../../src/manual/markdown.ts'
import { topics } from '../../src/manual/topics.ts'

type Answers = Record<string, string>
type Rules = { subject: string; condition: string }
type Card = { label: string; recipe?: string; questions: { name: string; options?: [string, string][] }[] }

// Not paths that TypeScript follows: the page has its own types.
const assets = `${import.meta.dirname}/../../src/page/assets`
const { platforms, rulesOf, answersIn, guessPlatform, linesForWorkload } = (await import(`${assets}/platforms.js`)) as {
  platforms: Record<string, Card>
  rulesOf: (platform: string, answers: Answers) => Rules
  answersIn: (platform: string, claims: object) => Answers
  guessPlatform: (url: string, claims?: object) => string
  linesForWorkload: (section: Block[]) => Block[]
}
Object.assign(globalThis, { location: { hash: '' } })
const { policyFrom, claimsIn } = (await import(`${assets}/from-token.js`)) as {
  policyFrom: (from: {
    issuerUrl: string
    claims: object
  }) => Rules & { platform: string; audience?: string; tests: string }
  claimsIn: (condition: string) => string[]
}

/** An issuer URL and answers that are enough, by card. Each gives other rules. */
const rows: [platform: string, issuerUrl: string, ...answers: Answers[]][] = [
  [
    'github',
    'https://token.actions.githubusercontent.com',
    { repositoryId: '797215326', value: 'main' },
    { repositoryId: '797215326', kind: 'environment', value: 'production' },
    { owner: 'acme', repository: 'app', kind: 'tag', value: 'v1' },
  ],
  [
    'gitlab',
    'https://gitlab.com',
    { projectId: '4711', value: 'main' },
    { projectId: '4711', kind: 'environment', value: 'production' },
    { project: 'acme/app', kind: 'tag', value: 'v1' },
    { project: 'acme/app', kind: 'environment', value: 'production' },
  ],
  ['kubernetes', 'https://kubernetes.default.svc.cluster.local', { namespace: 'batch', account: 'a', uid: 'u' }],
  ['eks', 'https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE', { namespace: 'batch', account: 'a' }],
  [
    'gke',
    'https://container.googleapis.com/v1/projects/p/locations/l/clusters/c',
    { namespace: 'batch', account: 'a' },
  ],
  ['aks', 'https://westeurope.oic.prod-aks.azure.com/t/c/', { namespace: 'batch', account: 'a' }],
  [
    'entra',
    'https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0',
    { object: 'o', tenant: 't' },
  ],
  ['okta', 'https://acme.okta.com/oauth2/aus1', { client: '0oa1' }],
  ['google', 'https://accounts.google.com', { account: '104479897743394244856' }],
  ['aws', 'https://0f1e2d3c.tokens.sts.global.api.aws', { role: 'arn:aws:iam::123456789012:role/batch' }],
  ['buildkite', 'https://agent.buildkite.com', { pipeline: 'p', branch: 'main', step: 'deploy' }, { pipeline: 'p' }],
  ['circleci', 'https://oidc.circleci.com/org/o', { project: 'p', origin: 'github.com/acme/app', branch: 'main' }],
  ['terraform', 'https://app.terraform.io', { workspace: 'ws-1', organization: 'org-1' }],
  ['spiffe', 'https://spire.acme.example', { id: 'spiffe://acme.example/ns/batch/sa/reports' }],
  ['keycloak', 'https://sso.acme.example/realms/acme', { client: 'batch', role: 'inference' }, { client: 'batch' }],
]

const environments = ({ subject, condition }: Rules) => ({
  ...{ audience: 'https://llm.acme.example', subject: subject || null, condition: condition || null },
  conditionEnvironment: condition === '' ? null : conditionEnvironment,
  ...{ requiredScope: null, requiredTokenType: null, attributeTo: null, attributeEnvironment: null },
})

test('every card but the last has rows here', () => {
  expect([...rows.map(([platform]) => platform), 'other'].toSorted()).toEqual(Object.keys(platforms).toSorted())
})

describe.each(rows)('%s', (platform, issuerUrl, ...all) => {
  test('is known by the URL of its issuer, and writes rules that the linter lets pass', () => {
    expect(guessPlatform(issuerUrl)).toBe(platform)
    const written = all.map((answers) => rulesOf(platform, answers))
    expect(new Set(written.map((rules) => JSON.stringify(rules))).size).toBe(all.length)
    for (const rules of written) {
      const issuer = { issuerUrl, maxTokenAgeSeconds: 600, shared: platform === 'okta' ? false : null }
      const asked = lintPolicy(environments(rules), {
        ...issuer,
        shared: platform === 'keycloak' ? false : issuer.shared,
      })
      const blocking = asked.filter(
        ({ level, rule }) => level === 'blocking' || ['dead', 'unknown-claim'].includes(rule),
      )
      expect({ rules, blocking }).toEqual({ rules, blocking: [] })
    }
  })

  test('writes nothing before somebody answers', () => {
    expect(rulesOf(platform, {})).toEqual({ subject: '', condition: '' })
  })
})

/** Examples of platforms that have no card: a token of theirs gives the exact subject. */
const withoutCard = ['bitbucket', 'jenkins']

describe('a policy from a token', () => {
  type Example = {
    issuers: { name: string; issuer_url: string }[]
    policies: {
      issuer: string
      audience: string
      subject?: string
      tests: { name: string; claims: object; expect: string }[]
    }[]
  }
  for (const [name, text] of examples)
    test(`of the example ${name} decides as the example does`, async () => {
      const { issuers, policies } = parse(text) as Example
      const [policy] = policies
      const issuerUrl = issuers.find((each) => each.name === policy?.issuer)?.issuer_url ?? ''
      const passing = policy?.tests.find(({ expect: outcome }) => outcome === 'allow')
      const { audience = '', subject = 'sub' } = policy ?? {}
      const claims = { iss: issuerUrl, sub: subject, aud: [audience, 'other'], ...passing?.claims, iat: 1, jti: 'j' }
      const made = policyFrom({ issuerUrl, claims })
      expect(made.platform === 'other').toBe(withoutCard.includes(name))
      expect(made.audience).toBe(audience)
      const tested = { ...environments(made), audience, replayProtection: false }
      const issuer = { issuerUrl, clockSkewSeconds: 30, maxTokenAgeSeconds: null }
      const own = (JSON.parse(made.tests) as { name: string; claims: object; expect: string }[])[0]
      expect(Object.keys(own?.claims ?? {})).not.toContain('jti')
      const wrong: string[] = []
      const all = [...(policy?.tests ?? []), ...(own === undefined ? [] : [own])]
      // Only the claims that a card reads keep others out.
      for (const each of made.platform === 'other' ? all.filter((one) => one.expect === 'allow') : all) {
        const given = { sub: subject, ...each.claims }
        const { got } = await runPolicyTest(tested, issuer, { ...each, claims: given }, Date.now())
        if ((got === 'allow') !== (each.expect === 'allow')) wrong.push(`${each.name}: ${got}`)
      }
      expect({ made, wrong }).toEqual({ made, wrong: [] })
    })

  test('reads back the answers that a card asks for', () => {
    const claims = { 'oidc.circleci.com/project-id': 'p', 'oidc.circleci.com/vcs-ref': 'refs/heads/main' }
    expect(answersIn('circleci', claims)).toEqual({ project: 'p', origin: '', branch: 'main' })
    const github = { repository: 'acme/app', repository_id: '7', ref: 'refs/tags/v1' }
    expect(answersIn('github', github)).toMatchObject({ repositoryId: '7', owner: 'acme', kind: 'tag', value: 'v1' })
    expect(answersIn('github', { ...github, environment: 'prod' })).toMatchObject({
      kind: 'environment',
      value: 'prod',
    })
  })

  test('of an issuer whose URL says nothing is known by its claims, and else has its exact subject', () => {
    expect(guessPlatform('https://a.example', { 'kubernetes.io': {} })).toBe('kubernetes')
    const made = policyFrom({ issuerUrl: 'https://a.example', claims: { sub: 'svc "x"', aud: 'llm' } })
    expect(made).toMatchObject({ platform: 'other', subject: 'svc "x"', condition: '', audience: 'llm' })
  })

  test('is one that no answer can break out of', () => {
    const { condition } = rulesOf('okta', { client: 'a" || true || "' })
    expect(condition).toBe('claims.cid == "a\\" || true || \\""')
    expect(claimsIn('claims.a == "x" && has(claims["b.c/d"]) && subject != ""')).toEqual(['a', 'b.c/d'])
  })
})

describe('the lines for the workload of a policy that exists', () => {
  const blocks = readMarkdown(topics.get('recipes') ?? '')
  const sectionOf = (heading: string) => {
    const start = blocks.findIndex((block) => block.kind === 'heading' && block.text === heading) + 1
    const length = blocks.slice(start).findIndex((block) => block.kind === 'heading' && block.level <= 2)
    return blocks.slice(start, start + length)
  }
  const recipes = Object.values(platforms).flatMap(({ recipe }) => recipe ?? [])

  test.each(recipes)('of %s have no word about how to write the policy', (recipe) => {
    const lines = linesForWorkload(sectionOf(recipe))
    expect(lines.length).toBeGreaterThan(0)
    expect(JSON.stringify(lines)).not.toMatch(/Policy: |latchkey policies create|sub` of one of your tokens/)
  })

  test('for GitHub keep the permission that a checkout needs', () => {
    const [first] = linesForWorkload(sectionOf('GitHub Actions'))
    const { permissions } = parse(first?.kind === 'code' ? first.text.replaceAll('\\', '') : '') as {
      permissions: object
    }
    expect(permissions).toEqual({ contents: 'read', 'id-token': 'write' })
  })

  test('keep what gets the token where a command for the policy stood before it', () => {
    const code = linesForWorkload(sectionOf('Keycloak')).flatMap((block) => (block.kind === 'code' ? [block.text] : []))
    expect(code).toEqual([expect.stringMatching(/^JWT=\$\(curl .*client_credentials/s)])
    const section = sectionOf('Python: `openai`')
    expect(linesForWorkload(section)).toEqual(section)
  })
})
