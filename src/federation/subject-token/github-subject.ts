// Explains a mismatch between the two forms of `sub` in GitHub Actions tokens: repo:OWNER/REPO:… and, for repositories
// created or renamed since July 2026, repo:OWNER@OWNER_ID/REPO@REPO_ID:… (GitHub's OpenID Connect reference). It
// decides nothing.

const form = /^repo:(?<owner>[^@/:]+)(?:@(?<ownerId>\d+))?\/(?<name>[^@/:]+)(?:@(?<nameId>\d+))?(?<rest>:.*)$/s

/** Explains why two subjects differ. Returns undefined if GitHub's ids are not the reason. */
export function explainGithubSubject(has: string, wants: string): string | undefined {
  const [token, policy] = [has, wants].map((text) => form.exec(text)?.groups)
  if (token === undefined || policy === undefined || token.rest !== policy.rest) return undefined
  const hasNames = token.owner === policy.owner && token.name === policy.name
  const [tokenHasIds, policyHasIds] = [token, policy].map(({ ownerId, nameId }) => (ownerId ?? nameId) !== undefined)
  if (tokenHasIds && policyHasIds) {
    if (token.ownerId !== policy.ownerId) return 'the ids differ: this is another owner'
    if (token.nameId !== policy.nameId) return 'the ids differ: this is another repository'
    return 'the ids are equal: the repository or its owner was renamed'
  }
  if (!hasNames || tokenHasIds === policyHasIds) return undefined
  return tokenHasIds
    ? `GitHub adds ids for repositories created or renamed since July 2026: use the token's sub if owner ${token.ownerId} and repository ${token.nameId} are yours`
    : 'GitHub does not use ids in this repository yet: opt in to immutable subjects there, or leave the ids out of the policy'
}
