// Invites a colleague: a new management key with a role and an end, and the lines to send them. The text of the key is shown once.
/** @import { Key } from '../../admin/transport/response-types.ts' */
/** @import { Page } from '../types.ts' */
import { openDialog } from './dialog.js'
import { editor } from './editor.js'
import { html } from './lit-html.js'
import { code } from './parts.js'

const roles = /** @type {const} */ (['viewer', 'auditor', 'operator', 'admin'])
/** @type {Record<string, string>} */
const may = {
  viewer: 'reads everything but the audit log',
  auditor: 'also reads the audit log',
  operator: 'also changes keys, budgets and presets',
  admin: 'changes everything',
}
const days = 90

/** As a field of the browser has it. */
const end = () => new Date(Date.now() + days * 86_400_000).toISOString()

/** The roles that somebody may give: none above their own. @param {string | null} own */
function offered(own) {
  const highest = roles.indexOf(/** @type {typeof roles[number]} */ (own))
  return roles.slice(0, highest + 1).map((role) => /** @type {const} */ ([role, `${role}: ${may[role]}`]))
}

/** @param {Page} page */
export const invite = (page) =>
  editor(page, {
    what: 'invitation',
    table: {
      name: { form: 'word', isNeeded: true, label: 'Who', help: 'Changes are recorded under this name' },
      role: { form: 'word', label: 'Role', common: 'viewer', options: offered(page.session.role) },
      expires_at: {
        form: 'time',
        label: 'Until',
        help: 'Empty: until somebody deletes the key',
        common: end(),
      },
    },
    act: 'keys.create',
    ...{ title: 'Invite a colleague', submit: 'Invite', path: '/keys', back: ['keys'] },
    saved: showInvitation,
    above: () =>
      html`<p class="muted">They get their own management key, which you can disable at any time. With an identity provider, people need no key:
        <a href="#/manual/people">a policy gives them a role</a>, and they sign in as themselves.</p>`,
  })

/** @param {{ data: Key, key: string }} response */
async function showInvitation({ data: { role, expires_at: until }, key }) {
  const lines = [
    `Open ${location.href.split('#')[0]} and sign in with this management key.`,
    `It has the role ${role}${until === null ? '' : ` until ${until.slice(0, 10)} (UTC)`}. Keep it like a password.`,
    '',
    key,
  ]
  await openDialog(
    'Send this to your colleague',
    (close) =>
      html`<div class="body"><p>This is the only time that the key is shown. Send it over a channel that only they read.</p>${code(lines.join('\n'), 'invitation')}</div>
        <div class="buttons"><button type="button" class="primary" @click=${() => close()}>I have copied it</button></div>`,
    { stays: true },
  ).closed
}
