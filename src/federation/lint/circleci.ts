// CircleCI: an issuer for each organization, and one for all (source: its documentation).
import type { Facts } from './fact.ts'
import { type IssuerKind, isAsked, isExactly, type Level } from './issuer-kind.ts'

const circleSubject = /^org\/[^/]+\/project\/[^/]+\//
const circleProject: Level = {
  pins: [
    { claim: 'oidc.circleci.com/project-id', immutable: true },
    { claim: 'sub', value: circleSubject, prefix: circleSubject, open: /^org\/[^/]+\/project\/./ },
  ],
}
/** Reports whether a claim, or the part of the subject of this name, is asked for. */
function isNamed(facts: Facts, name: string): boolean {
  const { values = [], prefix = '', suffix = '', contained = [] } = facts.get('sub') ?? {}
  const texts = [...values.map(String), prefix, suffix, ...contained]
  return isAsked(facts, `oidc.circleci.com/${name}`) || texts.some((text) => text.includes(`${name}/`))
}
const sshRerun = 'oidc.circleci.com/ssh-rerun'
export const circleci: IssuerKind = {
  id: 'circleci',
  title: 'CircleCI',
  matches: (issuerUrl) => /^https:\/\/oidc\.circleci\.com\/org\//.test(issuerUrl),
  isShared: () => false,
  levels: [circleProject],
  wideRule: 'circleci-project',
  checks: [
    { rule: 'circleci-ssh-rerun', applies: (facts) => !isExactly(facts, sshRerun, /^false$/) },
    { rule: 'circleci-fork', applies: (facts) => isNamed(facts, 'vcs-ref') && !isNamed(facts, 'vcs-origin') },
  ],
  chosenClaims: ['oidc.circleci.com/vcs-ref'],
  checkedClaims: [sshRerun, 'oidc.circleci.com/vcs-ref', 'oidc.circleci.com/vcs-origin'],
  stranger: {
    sub: 'org/c9035eb6-6eb2-4c85-8a81-d9ee6a1fa8c2/project/90000000-0000-4000-8000-000000000001/user/90000000-0000-4000-8000-000000000003/vcs-origin/github.com/mallory/lab/vcs-ref/refs/heads/patch-1',
    'oidc.circleci.com/context-ids': [],
    'oidc.circleci.com/job-id': '1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f9',
    'oidc.circleci.com/org-id': 'c9035eb6-6eb2-4c85-8a81-d9ee6a1fa8c2',
    'oidc.circleci.com/pipeline-definition-id': '961ae4b1-070b-4134-ae64-1328a3ae3862',
    'oidc.circleci.com/pipeline-id': '9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f',
    'oidc.circleci.com/project-id': '90000000-0000-4000-8000-000000000001',
    'oidc.circleci.com/ssh-rerun': true,
    'oidc.circleci.com/vcs-origin': 'github.com/mallory/lab',
    'oidc.circleci.com/vcs-ref': 'refs/heads/patch-1',
    'oidc.circleci.com/workflow-id': '2b3c4d5e-6f7a-4b8c-9d0e-1f2a3b4c5d6e',
  },
  sometimes: [],
  alsoKnown: /^oidc\.circleci\.com\//,
}

const circleOrganization = /^org\/[^/]+\//
/** `circleci run oidc get --root-issuer` asks for tokens of this issuer, which all organizations share. */
export const circleciRoot: IssuerKind = {
  ...circleci,
  id: 'circleci-root',
  title: 'CircleCI, for all organizations',
  matches: (issuerUrl) => /^https:\/\/oidc\.circleci\.com\/?$/.test(issuerUrl),
  isShared: () => true,
  levels: [
    {
      pins: [
        { claim: 'oidc.circleci.com/org-id', immutable: true },
        { claim: 'oidc.circleci.com/project-id', immutable: true },
        { claim: 'sub', value: circleOrganization, prefix: circleOrganization, open: /^org\/./ },
      ],
    },
    circleProject,
  ],
  stranger: {
    ...circleci.stranger,
    sub: 'org/90000000-0000-4000-8000-000000000009/project/90000000-0000-4000-8000-000000000001/user/90000000-0000-4000-8000-000000000003/vcs-origin/github.com/mallory/lab/vcs-ref/refs/heads/patch-1',
    'oidc.circleci.com/org-id': '90000000-0000-4000-8000-000000000009',
  },
}
