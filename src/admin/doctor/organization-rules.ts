// When the issuers, policies, budgets and webhooks of an organization need attention. Rules only: the facts are in memory, and the clock is an argument.

import type { PolicyState } from '../../../db/read/attention.ts'
import { shellWord } from '../../runtime/file-access.ts'
import { amountText } from '../../values/amount-text.ts'
import { dayText, durationText, type Finding, finding, listNames, minuteText } from './findings.ts'
import { type IssuerFacts, judgeIssuer } from './issuer-rules.ts'

/** The names of policies by what is wrong with them; `total` includes the others. */
export type PolicyFacts = {
  total: number
  names: Map<NonNullable<PolicyState[2]> | 'never_issued', string[]>
}

export type OrganizationFacts = {
  /** Undefined where it is the only one. */
  organization: string | undefined
  isEntitled: boolean
  issuers: readonly IssuerFacts[]
  policies: PolicyFacts
  /** Exchanges before this time were not read. */
  exchangesSince: number
  /** Of single keys; `spent` and `limit` in the same unit. */
  budgets: readonly { name: string; spent: number; limit: number }[]
  spentBudgets?: readonly SpentBudget[]
  unpriced?: UnpricedFacts | undefined
  /** Those whose last attempts failed. `since` in milliseconds. */
  webhooks?: readonly FailingWebhook[]
}

/** Requests that budgets in dollars counted as free lately, because their models have no price; `models` has an empty text for none. */
export type UnpricedRequests = { requests: number; models: Set<string>; names: Set<string> }
/** By whose budgets they are: those of many keys, and those of single ones. */
export type UnpricedFacts = { budgets: UnpricedRequests; keys: UnpricedRequests }

/** A budget that refuses requests: of `count` values, some of which are in `values`; none where it counts everything together. `resetsAt`: of the last. */
export type SpentBudget = { name: string; values: string[]; count: number; resetsAt: number }

export type FailingWebhook = { name: string; attempts: number; since: number; problem: string }

/** Share of a budget from which it is reported. */
export const budgetShare = 0.8

export function judgeOrganization(facts: OrganizationFacts, now: number): Finding[] {
  const within = facts.organization === undefined ? '' : ` in the organization ${JSON.stringify(facts.organization)}`
  return [
    ...judgePlan(facts),
    ...facts.issuers.flatMap((issuer) => judgeIssuer(issuer, within, now)),
    ...judgePolicies(facts, within),
    ...judgeBudgets(facts, within),
    ...judgeSpentBudgets(facts, within),
    ...judgeUnpriced(facts, within),
    ...judgeWebhooks(facts, within, now),
  ]
}

function judgePlan({ organization, isEntitled, policies }: OrganizationFacts): Finding[] {
  if (isEntitled || policies.total === 0) return []
  const name = organization ?? 'default'
  return [
    finding(
      {
        level: 'error',
        area: 'organizations',
        code: 'organization_not_entitled',
        message: `The plan of the organization ${JSON.stringify(name)} does not include federation, so its policies issue nothing`,
        action: `latchkey organizations plan ${shellWord(name)} business`,
      },
      [name],
    ),
  ]
}

const problems: Record<NonNullable<PolicyState[2]>, { why: string; action: string }> = {
  issuer_deleted: { why: 'the issuer was deleted', action: 'latchkey policies delete POLICY' },
  key_deleted: { why: 'the key was deleted', action: 'latchkey policies update POLICY --key KEY' },
  key_disabled: {
    why: 'the key is disabled',
    action: 'latchkey keys enable KEY, or: latchkey policies disable POLICY',
  },
  key_expired: { why: 'the key has expired', action: 'latchkey keys update KEY --expires-at TIME' },
}

function judgePolicies({ policies, exchangesSince }: OrganizationFacts, within: string): Finding[] {
  const ofProblems = Object.entries(problems).flatMap(([problem, { why, action }]) => {
    const names = policies.names.get(problem as keyof typeof problems) ?? []
    if (names.length === 0) return []
    const message = `${counted(names, 'policy', 'policies')}${within} cannot issue tokens because ${why}: ${listNames(names)}`
    return [finding({ level: 'error', area: 'policies', code: `policy_${problem}`, message, action }, names)]
  })
  const idle = policies.names.get('never_issued') ?? []
  if (idle.length === 0) return ofProblems
  const since = exchangesSince === 0 ? 'so far' : `since ${dayText(exchangesSince)}`
  const message = `${counted(idle, 'policy', 'policies')}${within} issued no access token ${since}: ${listNames(idle)}`
  const action = 'latchkey policies check --policy POLICY --token-file FILE, or: latchkey audit --policy POLICY'
  return [
    ...ofProblems,
    finding({ level: 'note', area: 'policies', code: 'policy_never_issued', message, action }, idle),
  ]
}

function judgeBudgets({ budgets }: OrganizationFacts, within: string): Finding[] {
  const action = 'Raise the limit: latchkey keys update KEY --budget DOLLARS, or wait for its reset'
  const levels = [
    { level: 'error', code: 'budget_spent', says: 'spent the whole budget, so requests are refused', from: 1 },
    { level: 'warning', code: 'budget_nearly_spent', says: 'spent at least 80 % of the budget', from: budgetShare },
  ] as const
  let upto = Number.POSITIVE_INFINITY
  return levels.flatMap(({ level, code, says, from }) => {
    const names = budgets
      .filter(({ spent, limit }) => spent >= from * limit && spent < upto * limit)
      .map(({ name }) => name)
    upto = from
    if (names.length === 0) return []
    const message = `${counted(names, 'key', 'keys')}${within} ${says}: ${listNames(names)}`
    return [finding({ level, area: 'budgets', code, message, action }, names)]
  })
}

/** Of many budgets, the sentence has the values of these. */
const spentBudgetsMax = 5

function judgeSpentBudgets({ spentBudgets = [] }: OrganizationFacts, within: string): Finding[] {
  if (spentBudgets.length === 0) return []
  const names = spentBudgets.map(({ name }) => name)
  const more = names.length - spentBudgetsMax
  const texts = spentBudgets.slice(0, spentBudgetsMax).map(spentText)
  const message = `${counted(names, 'budget is', 'budgets are')} spent${within}, so requests are refused: ${texts.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
  const action = 'latchkey budgets top-up BUDGET, or: latchkey budgets update BUDGET, or wait for the reset'
  return [finding({ level: 'error', area: 'budgets', code: 'budget_refuses', message, action }, names)]
}

function spentText({ name, values, count, resetsAt }: SpentBudget): string {
  const more = count - Math.min(values.length, spentValuesMax)
  const rest = more > 0 ? ` and ${more} more` : ''
  const listed = values
    .slice(0, spentValuesMax)
    .map((value) => (value === '' ? 'requests without a value' : JSON.stringify(value)))
    .join(', ')
  const of = values.length === 0 ? '' : ` for ${listed}${rest}`
  const until = Number.isFinite(resetsAt) ? `until ${minuteText(resetsAt)}` : 'for good'
  return `${JSON.stringify(name)}${of}, ${until}`
}

const spentValuesMax = 5

function judgeUnpriced({ unpriced }: OrganizationFacts, within: string): Finding[] {
  if (unpriced === undefined) return []
  const { budgets, keys } = unpriced
  return [
    ...unpricedFinding(budgets, `${counted([...budgets.names], 'budget', 'budgets')} in dollars${within}`),
    ...unpricedFinding(keys, `The dollar limits of ${counted([...keys.names], 'key', 'keys')}${within}`),
  ]
}

function unpricedFinding({ requests, models, names }: UnpricedRequests, who: string): Finding[] {
  if (requests === 0) return []
  const listed = [...models].filter((model) => model !== '')
  const [model = ''] = listed
  const named = listed.length === 1 ? shellWord(model) : 'MODEL'
  const why = listed.length === 0 ? 'their cost is unknown' : `no price is set for ${listNames(listed)}`
  const about = {
    level: 'warning',
    area: 'budgets',
    code: 'budget_cost_unknown',
    message: `${who} counted ${amountText(requests, 'requests')} of the last day as free, because ${why}: ${listNames([...names])}`,
    action: `latchkey prices set ${named} --prompt DOLLARS --completion DOLLARS`,
  } as const
  return [finding(about, [...names])]
}

/** One failed attempt can be a receiver that starts. */
const failedAttemptsMin = 3

function judgeWebhooks({ webhooks = [] }: OrganizationFacts, within: string, now: number): Finding[] {
  return webhooks
    .filter(({ attempts }) => attempts >= failedAttemptsMin)
    .map(({ name, since, problem }) =>
      finding(
        {
          level: 'warning',
          area: 'webhooks',
          code: 'webhook_failing',
          message: `Alerts have not reached the webhook ${JSON.stringify(name)}${within} for ${durationText((now - since) / 1_000)}: ${problem}`,
          action: `latchkey webhooks test ${shellWord(name)}`,
        },
        [name],
      ),
    )
}

function counted(names: readonly string[], one: string, many: string): string {
  return names.length === 1 ? `1 ${one}` : `${names.length} ${many}`
}
