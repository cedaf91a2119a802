// Judges published policies, which were collected and judged by people who had not seen the rules of the linter.
import {
  compileCondition,
  conditionEnvironment,
  isConditionFault,
} from '../../../../src/federation/condition/compile.ts'
import { lintPolicy } from '../../../../src/federation/lint/lint.ts'

export type CorpusRow = {
  id: string
  /** Where it was published. Names that it leaves open, and of owners of dangerous ones, are invented. */
  source: string
  issuer_url: string
  /** Whether strangers get tokens of the issuer: what its admin answers. */
  shared: boolean
  audience: string
  subject: string | null
  condition: string | null
  required_scope: string | null
  /** Dangerous if a person outside the organization gets a token that passes. */
  verdict: string
  /** Who passes. */
  why: string
}

/** Of the safe rows, the part that may be blocked. */
export const wronglyBlockedMax = 0.05

export function isValid({ subject, condition }: CorpusRow): boolean {
  if (condition === null) return subject !== null
  return !isConditionFault(compileCondition(condition))
}

export function isBlocked(row: CorpusRow): boolean {
  const { audience, subject, condition, issuer_url: issuerUrl, shared } = row
  const policy = {
    audience,
    subject,
    condition,
    conditionEnvironment: condition === null ? null : conditionEnvironment,
    requiredScope: row.required_scope,
    requiredTokenType: null,
  }
  return lintPolicy(policy, { issuerUrl, maxTokenAgeSeconds: 600, shared }).some(({ level }) => level === 'blocking')
}

/** The ids of the dangerous rows that nothing blocks, and of the safe rows that something blocks. */
export function judge(rows: readonly CorpusRow[]) {
  const idsOf = (verdict: string, blocked: boolean) =>
    rows.filter((row) => row.verdict === verdict && isBlocked(row) === blocked).map(({ id }) => id)
  return { missed: idsOf('dangerous', false), wronglyBlocked: idsOf('safe', true) }
}
