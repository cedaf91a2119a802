// Puts together what saves alerts and sends them, and what notices that budgets are nearly spent.

import type { Needs } from '../admin/operation/context.ts'
import { type Alerts, createAlerts } from '../monitoring/alerts/alerts.ts'
import { type BudgetAlerts, createBudgetAlerts } from '../monitoring/alerts/budget-alerts.ts'
import { createOutbox, type Outbox } from '../monitoring/alerts/outbox.ts'
import { sendEvent } from '../monitoring/alerts/send.ts'
import { createFindingCounts, type FindingCounts } from '../monitoring/finding-counts.ts'
import type { Metrics } from '../observe/metrics.ts'

export type AlertParts = { alerts: Alerts; budgetAlerts: BudgetAlerts; outbox: Outbox; findingCounts: FindingCounts }

type AlertContext = Needs<'orm' | 'writer' | 'registry' | 'budgets' | 'now' | 'log' | 'outbound' | 'config'> & {
  metrics: Metrics
  random: () => number
}

export function createAlertParts(admin: AlertContext, masterKey: CryptoKey): AlertParts {
  const { orm, writer, registry, budgets, metrics, now, random, log } = admin
  const outbox = createOutbox({
    ...{ orm, writer, registry, masterKey, random, now, log },
    send: (target, event, signal) => sendEvent(admin, target, event, signal),
    count: metrics.countDelivery,
  })
  const onSaved = () => void outbox.deliver()
  const alerts = createAlerts({ orm, writer, now, log, count: metrics.countAlert, onSaved })
  const budgetAlerts = createBudgetAlerts(budgets, alerts)
  budgets.onNear.push(budgetAlerts.look)
  // After the sums are built again, so that a new budget or percent alerts of what was spent already.
  registry.onBudgetsChanged.push(async () => void budgetAlerts.lookAtAll(now()))
  return { alerts, budgetAlerts, outbox, findingCounts: createFindingCounts() }
}
