// The views of the page by name, as the navigation lists them. A view is a module that exports `view`, a function from a
// Page (types.ts) to what renders it; it is loaded when it is first opened. To add one: an entry here, and its file in
// assets.ts.
/** @import { View } from '../types.ts' */
/** @import { IconName } from './icons.js' */

/**
 * @typedef {{ name: IconName, title: string, load: () => Promise<{ view: View }> }} Entry
 */

/** @type {readonly { title: string, entries: readonly Entry[] }[]} */
export const groups = [
  { title: '', entries: [{ name: 'overview', title: 'Overview', load: () => import('./overview.js') }] },
  {
    title: 'Workload identity',
    entries: [
      { name: 'start', title: 'Get started', load: () => import('./start.js') },
      { name: 'policies', title: 'Policies', load: () => import('./policies.js') },
      { name: 'issuers', title: 'Issuers', load: () => import('./issuers.js') },
      { name: 'try', title: 'Try a token', load: () => import('./try.js') },
      { name: 'exchanges', title: 'Exchanges', load: () => import('./exchanges.js') },
      { name: 'bundles', title: 'Key bundles', load: () => import('./bundles.js') },
    ],
  },
  {
    title: 'Inference',
    entries: [
      { name: 'keys', title: 'Keys', load: () => import('./keys.js') },
      { name: 'budgets', title: 'Budgets', load: () => import('./budgets.js') },
      { name: 'presets', title: 'Presets', load: () => import('./presets.js') },
      { name: 'requests', title: 'Requests', load: () => import('./requests.js') },
      { name: 'usage', title: 'Usage', load: () => import('./usage.js') },
      { name: 'upstreams', title: 'Servers and prices', load: () => import('./upstreams.js') },
    ],
  },
  {
    title: 'Administration',
    entries: [
      { name: 'changes', title: 'Changes', load: () => import('./changes.js') },
      { name: 'audit-log', title: 'Audit log', load: () => import('./audit-log.js') },
      { name: 'documents', title: 'Configuration', load: () => import('./documents.js') },
      { name: 'organization', title: 'Organization', load: () => import('./organization.js') },
      { name: 'webhooks', title: 'Alerts', load: () => import('./webhooks.js') },
      { name: 'system', title: 'System', load: () => import('./system.js') },
    ],
  },
  { title: 'Help', entries: [{ name: 'manual', title: 'Manual', load: () => import('./manual.js') }] },
]

/** @param {string | undefined} name */
export function findEntry(name) {
  return groups.flatMap(({ entries }) => entries).find((entry) => entry.name === name)
}
