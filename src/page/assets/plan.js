// Why nothing can be exchanged where the plan of the organization lacks workload identity.
/** @import { Page } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { callout, stored } from './parts.js'

/** @param {Page} page */
export function planNotice({ session: { organization } }) {
  if (organization.workload_identity) return nothing
  return callout(
    'warn',
    html`<strong>No token can be exchanged.</strong> Workload identity is part of the plans business and enterprise, and
      ${stored(organization.name, 80)} is on the plan ${organization.plan}. Everything here can be prepared. An operator of
      the server changes the plan: <code>latchkey organizations plan ORGANIZATION business</code>.`,
  )
}
