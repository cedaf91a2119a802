// The rules of the linter: what each means, how it is attacked, and how to fix a policy. The manual shows this table.

/**
 * A blocking finding refuses a save without an exception. A warning should be read; a note may be. Of a rule, it is the
 * level on issuers whose tokens strangers can get: see `levelOf`.
 */
export type LintLevel = 'blocking' | 'warning' | 'note'
export type LintRule = { level: LintLevel; means: string; attack: string; fix: string }

const blocking = (means: string, attack: string, fix: string): LintRule => ({ level: 'blocking', means, attack, fix })
const warning = (means: string, attack: string, fix: string): LintRule => ({ level: 'warning', means, attack, fix })
const note = (means: string, attack: string, fix: string): LintRule => ({ level: 'note', means, attack, fix })

const table = {
  vacuous: blocking(
    'The policy accepts any token of the issuer that has its audience.',
    'A stranger requests a token with your audience and exchanges it.',
    'Compare a claim that only your workload has, such as the subject.',
  ),
  'shared-no-tenant': blocking(
    'Everyone can have tokens of this issuer, and the policy does not name its tenant on every path.',
    'A stranger sets the claims that the policy compares in their own account.',
    'Require the id of your organization, group or repository on every path.',
  ),
  'prefix-open': blocking(
    'A prefix ends within a name, so longer names match too.',
    'A stranger registers a name that begins like yours: `acme-evil` begins with `acme`.',
    'End the prefix with the delimiter, such as `repo:acme/`, or compare the whole value.',
  ),
  'contains-only': blocking(
    'The tenant is only compared with `contains` or `endsWith`, which the rest of the value can satisfy.',
    'A stranger puts the text into a part that they choose, such as a branch or the name of an environment.',
    'Compare the whole value, or its beginning up to a delimiter.',
  ),
  'shared-unknown': blocking(
    'Nobody has answered whether strangers can get tokens of this issuer. If they can, the policy may be too wide.',
    'If the issuer is a service that others use too, a stranger passes with their own account there.',
    'Say on the issuer whether strangers can get its tokens (`latchkey issuers update NAME --shared no`, or `yes`; in a document `shared: false`, or `true`).',
  ),
  'not-decided': blocking(
    'Everyone can have tokens of this issuer, and the linter cannot decide whether a stranger passes.',
    'A stranger satisfies the part of the condition that the linter does not follow.',
    'Compare an id with `==`, or the subject if the linter does not know the issuer. Or accept the risk and say why (`--allow not-decided --because TEXT`).',
  ),
  'not-proven-narrow': warning(
    'The linter cannot decide who passes: it does not follow a part of the condition, or its example did not pass.',
    'The part that was not followed may admit a stranger.',
    'Add a comparison of an id with `==`, or review the condition by hand.',
  ),
  'exclusion-only': warning(
    'On some path the policy only excludes values, or asks for flags or the presence of claims.',
    'Anyone who is not excluded passes, and so does every workload that is added later.',
    'Compare the subject or another claim that identifies the workload.',
  ),
  dead: warning(
    'No token of the issuer can satisfy the policy: the comparisons contradict one another, or this issuer never sends such a value.',
    'No stranger passes, but neither does the workload. `*` is not a wildcard, and some ids are strings.',
    'Compare it with a real token (`latchkey policies check`).',
  ),
  'look-alike': warning(
    'A name that the policy compares has letters outside ASCII, which can look like others.',
    'A stranger registers the name, which looks like yours: the first letter of `аcme.com` is Cyrillic.',
    'Write the name again by hand, unless its letters are meant.',
  ),
  'unknown-claim': warning(
    'The policy compares a claim that tokens of this issuer are not known to have.',
    'No stranger passes, but a misspelled claim refuses the workload.',
    'Check the name of the claim in a real token.',
  ),
  'always-error': warning(
    'An exclusion reads a claim that some tokens lack. Such tokens are refused with an error.',
    'No stranger passes, but tokens without the claim do not pass an exclusion such as `!=`.',
    'Ask `has(…)` first, as in `!has(claims.environment) || claims.environment != "test"`.',
  ),
  'default-audience': warning(
    'The audience is one that tokens for other services have: a default of the platform, or the address of a public inference service.',
    'Another service that receives such a token sends it here.',
    'Choose an audience of your own, such as the URL of your server, and request it.',
  ),
  'attribution-chosen': warning(
    'The policy attributes usage to a claim that the author of a job chooses.',
    'A workload whose budget is spent takes another branch or environment name, and has a new budget.',
    'Attribute to an id that the issuer sets, such as `claims.repository_id` or `claims.project_id`.',
  ),
  'tenant-wide': warning(
    'The policy names the tenant, but nothing within it: every repository, project, job or application passes.',
    'Anyone who can run a job anywhere in the organization passes.',
    'Require a repository, project or application, by id.',
  ),
  'prefix-within': blocking(
    'A prefix ends within the name of a repository, project or account, so longer names match too.',
    'Someone creates a repository whose name begins like yours: `acme/app-evil` begins with `acme/app`.',
    'End the prefix with the delimiter, such as `repo:acme/app:`, or compare the whole value.',
  ),
  'prefix-names': warning(
    'A prefix, or another part of a name, selects every name that has it, also names that do not exist yet.',
    'Someone who may create a repository, project or account picks such a name.',
    'List the names, or make sure that only administrators create them.',
  ),
  'github-environment-alone': blocking(
    'The policy compares `environment`, `workflow`, `ref`, `head_ref`, `base_ref`, `actor`, `actor_id` or `job_workflow_ref` without the calling owner or repository.',
    'A stranger creates an environment `production` in their repository, or calls your public reusable workflow from it.',
    'Require `repository_id` or `repository_owner_id` too.',
  ),
  'github-pull-request': blocking(
    'The policy accepts tokens of pull requests.',
    'Anyone who can open a pull request from a branch changes the workflow and gets a token, before any review.',
    'Require a branch (`:ref:refs/heads/main`) or a protected environment.',
  ),
  'github-any-ref': warning(
    'The policy names a repository, but no ref, environment or reusable workflow, so every branch and pull request passes.',
    'Everyone who can push a branch changes the workflow and gets a token.',
    'Require `ref`, or an environment that only protected branches can use.',
  ),
  'github-risky-event': warning(
    'The policy names an event that runs trusted workflows on untrusted input: `pull_request_target`, `workflow_run` or `issue_comment`.',
    'A stranger opens a pull request or writes a comment, and the workflow runs their code with your token.',
    'Name `push` or `workflow_dispatch`, and never check out the code of a pull request in such a workflow.',
  ),
  'github-reusable': warning(
    'A reusable workflow is named without its ref.',
    'Everyone who can push a branch to its repository changes the workflow there, and a caller can name that branch.',
    'Compare the whole `job_workflow_ref`, with `@refs/heads/main` or a tag.',
  ),
  'github-name-only': warning(
    'Owner and repository are only compared by name.',
    'After a rename or deletion, a stranger registers the free name and passes.',
    'Require `repository_id` or `repository_owner_id`, or use the subject with ids.',
  ),
  'github-old-subject': note(
    'The subject has the form without ids. Repositories created or renamed since July 2026 send `repo:OWNER@ID/REPO@ID:…`.',
    'No stranger passes, but after a rename or an opt-in the workload is refused.',
    'Compare ids in a condition, which holds for both forms.',
  ),
  'gitlab-unprotected': warning(
    'The policy accepts jobs of unprotected branches and tags.',
    'Everyone with the role Developer pushes a branch with a changed `.gitlab-ci.yml` and gets a token.',
    'Require `claims.ref_protected == "true"`, or an exact ref.',
  ),
  'gitlab-name-only': warning(
    'Group and project are only compared by path.',
    'After a rename or deletion, a stranger registers the free path and passes.',
    'Require `project_id` or `namespace_id`.',
  ),
  'gitlab-subgroups': note(
    'The prefix of a path also selects projects of all subgroups.',
    'Someone who may create a subgroup creates a project in it.',
    'Require `namespace_id`, which subgroups do not share.',
  ),
  'k8s-any-namespace': blocking(
    'A service account is named without its namespace.',
    'Someone with another namespace creates a service account of the same name.',
    'Compare the whole subject: `system:serviceaccount:NAMESPACE:NAME`.',
  ),
  'k8s-namespace': warning(
    'Every service account of a namespace passes.',
    'Every pod of the namespace can request such a token, also one of another team.',
    'Compare the whole subject: `system:serviceaccount:NAMESPACE:NAME`.',
  ),
  'k8s-default-account': warning(
    'The service account is `default`, which every pod without its own account uses.',
    'Any pod in the namespace passes, also one of a chart that somebody installs.',
    'Create a service account for the workload.',
  ),
  'k8s-recreated': note(
    'Namespace and service account are only compared by name.',
    'After a deletion, someone creates a namespace or service account of the same name.',
    'Require the `uid` of the service account if namespaces change hands.',
  ),
  'circleci-project': warning(
    'Every project of the CircleCI organization passes.',
    'Someone adds a project to the organization and runs a job.',
    'Require `oidc.circleci.com/project-id`.',
  ),
  'circleci-fork': warning(
    'The policy names a branch, but not the repository that has it.',
    'If the project builds pull requests of forks, a stranger opens one from a branch of this name in their fork.',
    'Require `oidc.circleci.com/vcs-origin`, such as `github.com/acme/app`.',
  ),
  'circleci-ssh-rerun': warning(
    'Jobs that are rerun with SSH pass.',
    'A person who reruns a job with SSH reads the token at a shell.',
    'Require `claims["oidc.circleci.com/ssh-rerun"] == false`.',
  ),
  'buildkite-names': warning(
    'Organization and pipeline are only compared by slug.',
    'After a rename or deletion, a stranger registers the free slug and passes.',
    'Let the agent ask for the claims `organization_id` and `pipeline_id`, and compare these.',
  ),
  'terraform-plan': warning(
    'Plans pass, also speculative plans of pull requests.',
    'Someone opens a pull request whose configuration sends the token elsewhere during the plan.',
    'Require `claims.terraform_run_phase == "apply"`.',
  ),
  'terraform-names': warning(
    'Organization and workspace are only compared by name.',
    'After a rename or deletion, a stranger registers the free name and passes.',
    'Require `terraform_organization_id` or `terraform_workspace_id`.',
  ),
  'email-domain': blocking(
    'An email address is only compared by its domain, and the linter cannot know who can have an address there.',
    'A stranger has an address of this domain from a mail or alias service, or still has an account with the address of a former job.',
    'Google: require `hd` too, such as `claims.hd == "acme.com"`, or `@PROJECT.iam.gserviceaccount.com`. Elsewhere, compare whole addresses. Or accept the risk and say why (`--allow email-domain --because TEXT`).',
  ),
  'google-email': blocking(
    'The policy compares `email`, but neither `email_verified` nor `sub`.',
    'A stranger creates an account with that address and does not verify it.',
    'Compare `sub`, the unique id of the account.',
  ),
  'google-email-only': warning(
    'The account is only compared by its verified email address.',
    'After the account is deleted, someone creates one with the same address.',
    'Compare `sub`, the unique id of the account.',
  ),
  'spiffe-domain': warning(
    'Every workload of the trust domain passes.',
    'Any workload with an SVID of this trust domain passes.',
    'Compare the whole SPIFFE ID, or a path that ends with `/`.',
  ),
  'long-token': note(
    'Tokens of this platform can live for hours, and the issuer has no maximum token age.',
    'A token that leaks in a log can be exchanged until it expires.',
    'Set the maximum token age of the issuer, such as an hour (`latchkey issuers update NAME --max-token-age 1h`).',
  ),
} as const satisfies Record<string, LintRule>

export type RuleName = keyof typeof table
export const ruleNames = Object.keys(table) as RuleName[]
export const lintRules: Readonly<Record<RuleName, LintRule>> = table

/** Returns the level of a finding. On an issuer whose tokens no stranger gets, every policy may be meant, so nothing blocks. */
export function levelOf(rule: RuleName, shared: boolean): LintLevel {
  const { level } = lintRules[rule]
  return level === 'blocking' && !shared ? 'warning' : level
}
