// The fields of a budget, in the order in which documents, responses and commands have them. What is particular to budgets lies in
// admin/budgets.

import { type Budget, budgetModes, holdRules, unpricedRules } from '../../../db/schema/budget-schema.ts'
import { runningRequestsShape } from '../../values/queue-bounds.ts'
import { type } from '../../values/shape.ts'
import { nameShape } from '../../values/shapes.ts'
import {
  alertsShape,
  eachShape,
  overridesShape,
  scopeShape,
  shownTopUp,
  shownWindow,
  windowsShape,
} from './budget-shapes.ts'
import { type Fields, storedTime } from './fields.ts'

const time = type('string').configure({ format: 'date-time' })

export const budgetFields = {
  id: { column: 'id', shown: 'string', line: 'id' },
  name: {
    shape: nameShape,
    required: true,
    column: 'name',
    shown: 'string',
    line: 'name',
    flag: { option: '--name <name>', says: 'name of the budget' },
  },
  organization_id: { column: 'organizationId', shown: 'string' },
  enabled: {
    shape: type('boolean'),
    create: false,
    default: true,
    column: 'enabled',
    shown: 'boolean',
    line: 'enabled',
  },
  applies_to: {
    shape: scopeShape.or('null'),
    isResolved: true,
    column: 'appliesTo',
    normal: withoutEmpty,
    shown: 'object | null',
    flag: {
      option: '--applies-to <file>',
      says: 'JSON file with the workspaces, keys, labels, policies and models that it is for (default: everything)',
      form: 'json-file',
      no: 'apply to everything',
    },
  },
  each: {
    shape: eachShape.or('null'),
    column: 'each',
    shown: 'string | null',
    line: 'each?',
    flag: {
      option: '--each <what>',
      says: 'one for each key, policy, attribution, session or label:NAME (default: one for all)',
      no: 'one for all',
    },
  },
  windows: {
    shape: windowsShape,
    default: [],
    column: 'windows',
    normal: sortedByPeriod,
    shown: shownWindow.array(),
    flag: {
      option: '--windows <amounts...>',
      says: 'what may be used in an hour, day, week, month or lifetime, such as month=20usd or day=5usd,1000requests',
      form: 'windows',
    },
  },
  concurrent_requests: {
    shape: runningRequestsShape,
    column: 'concurrentRequests',
    shown: 'number.integer | null',
    line: 'running at most?',
    flag: {
      option: '--concurrent-requests <number>',
      says: 'requests that run at once; more wait for their turn (default: any number)',
      form: 'number',
      no: 'let any number of requests run at once',
    },
  },
  overrides: {
    shape: overridesShape.or('null'),
    column: 'overrides',
    normal: withoutEmpty,
    shown: type({ '[string]': shownWindow.array() }).or('null'),
    flag: {
      option: '--overrides <values...>',
      says: 'other windows for single values of --each, such as 456789:month=50usd; or a JSON file with them',
      form: 'overrides',
      no: 'remove the other windows',
    },
  },
  top_ups: { shown: shownTopUp.array() },
  mode: {
    shape: type.enumerated(...budgetModes),
    default: 'block',
    column: 'mode',
    shown: type.enumerated(...budgetModes),
    line: 'mode',
    flag: {
      option: '--mode <mode>',
      says: 'block refuses requests when it is spent, warn only counts (default: block)',
      choices: budgetModes,
    },
  },
  unpriced: {
    shape: type.enumerated(...unpricedRules),
    default: 'count',
    column: 'unpriced',
    shown: type.enumerated(...unpricedRules),
    line: 'unpriced models',
    flag: {
      option: '--unpriced <rule>',
      says: 'count requests to models without a price as free, or refuse them (default: count)',
      choices: unpricedRules,
    },
  },
  hold: {
    shape: type.enumerated(...holdRules),
    default: 'expected',
    column: 'hold',
    shown: type.enumerated(...holdRules),
    line: 'holds',
    flag: {
      option: '--hold <rule>',
      says: 'what running requests hold: what they probably use, the most that they can use (worst), or nothing (off) (default: expected)',
      choices: holdRules,
    },
  },
  alerts: {
    shape: alertsShape,
    default: [80, 100],
    column: 'alerts',
    stored: { toColumn: sortedNumbers, toShown: (percents) => percents },
    normal: sortedNumbers,
    shown: 'number.integer[]',
    line: 'alerts at %',
    flag: {
      option: '--alerts <percent...>',
      says: 'percents of a window at which to alert, each once in a period (default: 80 100)',
      form: 'numbers',
      no: 'alert at no percent',
    },
  },
  managed_by: { column: 'managedBy', shown: 'string | null' },
  created_at: { column: 'createdAt', stored: storedTime, shown: time },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: time },
} as const satisfies Fields<Budget>

function withoutEmpty(value: unknown): unknown {
  return Object.keys(value as object).length === 0 ? null : value
}

function sortedNumbers(value: unknown): number[] {
  return [...new Set(value as number[])].toSorted((one, other) => one - other)
}

function sortedByPeriod(value: unknown): unknown {
  return (value as Budget['windows']).toSorted((one, other) => (one.per < other.per ? -1 : 1))
}
