// Random conditions of several platforms, other spellings of them, and tokens of strangers.
import fc from 'fast-check'
import { compileCondition, isConditionFault } from '../../../src/federation/condition/compile.ts'
import { github } from '../../../src/federation/lint/github.ts'
import { strangerOf } from '../../../src/federation/lint/witness.ts'
import { type IssuerName, issuerUrls, type PolicyRow, policyOf } from './linting.ts'

export type Expression =
  | { test: string }
  | { not: Expression }
  | { all: Expression[] }
  | { any: Expression[] }
  | { if: [Expression, Expression, Expression] }

const claims: Partial<Record<IssuerName, string[]>> = {
  github: [
    'sub',
    'repository',
    'repository_id',
    'repository_owner',
    'ref',
    'environment',
    'event_name',
    'job_workflow_ref',
  ],
  gitlab: ['sub', 'project_path', 'project_id', 'namespace_path', 'ref', 'ref_protected', 'environment'],
  kubernetes: ['sub', '["kubernetes.io"].namespace', '["kubernetes.io"].serviceaccount.name'],
  google: ['sub', 'email', 'email_verified', 'hd'],
  terraform: ['sub', 'terraform_organization_id', 'terraform_workspace_name', 'terraform_run_phase'],
  own: ['sub', 'azp', 'groups', 'scope'],
}
const texts = [
  ...[
    'acme',
    'acme/',
    'acme/app',
    'acme/app-',
    '1',
    'refs/heads/main',
    'refs/heads/',
    'production',
    'pull_request',
    'push',
  ],
  ...['repo:acme', 'repo:acme/', 'repo:acme/app:', 'repo:acme/app:ref:refs/heads/main', 'repo:acme/app:pull_request'],
  ...[
    'project_path:acme',
    'project_path:acme/app:ref_type:branch:ref:main',
    'system:serviceaccount:ml:',
    'true',
    'apply',
  ],
  ...[
    'system:serviceaccount:ml:default',
    'acme/ci/.github/workflows/a.yml@refs/heads/main',
    '@acme.example',
    '117',
    '',
  ],
]
/** Texts of other platforms would make the linter take an unknown issuer for one of them. */
const plainTexts = texts.filter((text) => !/^(?:project_path|system):/.test(text))

function testOf(issuer: IssuerName): fc.Arbitrary<Expression> {
  const known = issuer === 'own' ? plainTexts : texts
  const literal = fc.constantFrom(...known).map((text) => JSON.stringify(text))
  const claim = fc
    .constantFrom(...(claims[issuer] ?? []))
    .map((name) => (name.startsWith('[') ? `claims${name}` : name === 'sub' ? 'subject' : `claims.${name}`))
  const list = fc.array(literal, { minLength: 1, maxLength: 3 }).map((items) => `[${items.join(', ')}]`)
  const shapes = [
    fc.tuple(claim, literal).map(([one, other]) => `${one} == ${other}`),
    fc.tuple(claim, literal).map(([one, other]) => `${other} != ${one}`),
    fc.tuple(claim, list).map(([one, other]) => `${one} in ${other}`),
    fc
      .tuple(claim, fc.constantFrom('startsWith', 'endsWith', 'contains'), literal)
      .map(([one, name, other]) => `${one}.${name}(${other})`),
    fc.tuple(claim, list).map(([one, other]) => `${other}.exists(x, ${one}.startsWith(x + "/"))`),
    fc.tuple(claim, literal).map(([one, other]) => (one === 'subject' ? 'true' : `${one}.exists(x, x == ${other})`)),
    claim.map((one) => (one === 'subject' || one.includes('[') ? 'has(claims.jti)' : `has(${one})`)),
    claim.map((one) => (one === 'subject' ? 'size(subject) > 7' : `size(${one}) > 7`)),
    fc.constantFrom('true', 'false', '1 == 1', 'claims.iat > 5', '"x" in scopes', 'claims.email_verified == true'),
  ]
  return fc.oneof(...shapes).map((test) => ({ test }))
}

function expressionOf(issuer: IssuerName): fc.Arbitrary<Expression> {
  const { whole } = fc.letrec<{ whole: Expression }>((tie) => ({
    whole: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      testOf(issuer),
      tie('whole').map((not) => ({ not })),
      fc.array(tie('whole'), { minLength: 2, maxLength: 3 }).map((all) => ({ all })),
      fc.array(tie('whole'), { minLength: 2, maxLength: 3 }).map((any) => ({ any })),
      fc.tuple(tie('whole'), tie('whole'), tie('whole')).map((parts) => ({ if: parts })),
    ),
  }))
  return whole
}

function write(expression: Expression): string {
  if ('test' in expression) return expression.test
  if ('not' in expression) return `!(${write(expression.not)})`
  if ('all' in expression) return expression.all.map((each) => `(${write(each)})`).join(' && ')
  if ('any' in expression) return expression.any.map((each) => `(${write(each)})`).join(' || ')
  const [condition, yes, no] = expression.if.map((each) => `(${write(each)})`)
  return `${condition} ? ${yes} : ${no}`
}

/** The same condition with every order turned around and every part negated twice. */
export function respell(expression: Expression): Expression {
  if ('test' in expression) return { not: { not: expression } }
  if ('not' in expression) return { not: respell(expression.not) }
  if ('all' in expression) return { not: { not: { all: expression.all.map(respell).toReversed() } } }
  if ('any' in expression) return { not: { all: expression.any.map((each) => ({ not: respell(each) })).toReversed() } }
  const [condition, yes, no] = expression.if.map(respell) as [Expression, Expression, Expression]
  return { if: [{ not: condition }, no, yes] }
}

export const policies = fc
  .constantFrom(...(Object.keys(claims) as IssuerName[]))
  .chain((issuer) => fc.tuple(fc.constant(issuer), expressionOf(issuer), expressionOf(issuer)))

export function rowOf(issuer: IssuerName, expression: Expression): PolicyRow | undefined {
  const condition = write(expression)
  return isConditionFault(compileCondition(condition)) ? undefined : { issuer, condition }
}

/** Tests of claims that name a tenant, with parts of our name. */
const tenantTest: fc.Arbitrary<Expression> = fc
  .tuple(
    fc.constantFrom('subject', 'claims.repository', 'claims.repository_owner', 'claims.workflow_ref'),
    fc.constantFrom('startsWith', 'endsWith', 'contains'),
    fc.constantFrom(
      'acme',
      'acme/',
      'acme/app',
      'repo:acme',
      'repo:acme/',
      'repo:',
      '/app',
      'app',
      ':',
      'refs/heads/main',
    ),
    fc.boolean(),
  )
  .map(([claim, name, text, negated]) => ({ test: `${negated ? '!' : ''}${claim}.${name}("${text}")` }))
const anyTest = fc.oneof(tenantTest, tenantTest, testOf('github'))
export const strangerPolicies: fc.Arbitrary<Expression> = fc.oneof(
  anyTest,
  fc.tuple(anyTest, anyTest).map((all) => ({ all })),
  fc.tuple(anyTest, anyTest).map((any) => ({ not: { not: { any } } })),
)
/** Tokens of strangers: other owners with longer names than ours, other ids, and free values of the policies. */
export const strangers = fc
  .record({
    owner: fc.constantFrom('mallory', 'acme-evil', 'evil-acme'),
    name: fc.constantFrom('lab', 'app', 'acme'),
    ref: fc.constantFrom('refs/heads/main', 'refs/pull/7/merge', 'refs/heads/acme/app'),
    environment: fc.constantFrom(undefined, 'production', 'acme/app', 'repo:acme/app:ref:refs/heads/main'),
    event_name: fc.constantFrom('push', 'pull_request', 'workflow_dispatch'),
  })
  .map(({ owner, name, ref, environment, event_name }) => {
    const repository = `${owner}/${name}`
    const rest = event_name === 'pull_request' ? 'pull_request' : `ref:${ref}`
    return {
      ...strangerOf(github, issuerUrls.github, policyOf({ issuer: 'github' }).audience),
      ...{ repository, repository_owner: owner, ref, event_name },
      ...(environment === undefined ? {} : { environment }),
      sub: `repo:${repository}:${environment === undefined ? rest : `environment:${environment}`}`,
      job_workflow_ref: `${repository}/.github/workflows/a.yml@${ref}`,
    }
  })
