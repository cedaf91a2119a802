// Why nothing can be exchanged where the plan of the organization lacks workload identity.
/** @import { Page } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { callout, stored } from './parts.js'
import { asCommand, deed } from './remedies.js'

/** @param {Page} page */
export function planNotice(page) {
  const { organization } = page.session
  if (organization.workload_identity) return nothing
  return callout(
    'warn',
    html`<div class="stack"><p><strong>No token can be exchanged.</strong> Workload identity is part of the plans business and enterprise, and
      ${stored(organization.name, 80)} is on the plan ${organization.plan}. Everything here can be prepared. An admin of the organization that the installation was set up with changes the plan.</p>
      <div class="actions">${deed(page, 'organizations.plan', organization.name)}${asCommand('latchkey organizations plan ORGANIZATION business')}</div></div>`,
  )
}
