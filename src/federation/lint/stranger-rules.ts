// Which rules of the linter ask whether a stranger passes.
import type { RuleName } from './rules.ts'

/**
 * The rules that ask whether a stranger passes. They answer one question, from the most to the least specific; if one of
 * them is found, all other questions about who passes are open.
 */
export const strangerRules: readonly RuleName[] = [
  'vacuous',
  'prefix-open',
  'contains-only',
  'email-domain',
  'github-environment-alone',
  'k8s-any-namespace',
  'shared-no-tenant',
  'exclusion-only',
  'not-decided',
  'not-proven-narrow',
]
