// Alerts: the webhooks with how their deliveries fare, a test of each, and a form for a new one, whose secret is shown once.
/** @import { Alert, Webhook } from '../../admin/transport/response-types.ts' */
/** @import { Page, View } from '../types.ts' */
import { get, segment, send } from './client.js'
import { confirm, openDialog } from './dialog.js'
import { editor } from './editor.js'
import { switchButton } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { ago, badge, button, code, count, empty, heading, loading, mono, stored } from './parts.js'
import { href } from './router.js'
import { table } from './table.js'

const path = '/webhooks'

/** @type {View} */
export const view = (page) => {
  const [id] = page.path
  return id === undefined ? list(page) : webhookForm(page, id === 'new' ? undefined : id)
}

/** @type {View} */
function list(page) {
  /** @type {Webhook[] | undefined} */
  let webhooks
  /** @type {Alert[]} */
  let alerts = []
  page.poll(async () => {
    ;[webhooks, alerts] = (await Promise.all([get(path), get('/alerts?limit=20')])).map(({ data }) => data)
  }, 10)
  const reload = () => page.refresh()
  const test = async (/** @type {Webhook} */ { id }) => {
    const { ok, status, problem: why } = (await send('POST', `${path}/${segment(id)}/test`)).data
    notify(ok ? 'ok' : 'bad', ok ? `The receiver responded with ${status}` : `The test event did not arrive: ${why}`)
  }
  const toggle = async (/** @type {Webhook} */ { id, enabled }) => {
    await send('PATCH', `${path}/${segment(id)}`, { enabled: !enabled })
    await reload()
  }
  const remove = async (/** @type {Webhook} */ { id, name }) => {
    const body = html`<p>${stored(name, 100)} gets no more alerts, also none that wait.</p>`
    if (!(await confirm({ title: 'Delete this webhook?', body, action: 'Delete webhook', isDanger: true }))) return
    await send('DELETE', `${path}/${segment(id)}`)
    await reload()
  }
  const actions = (/** @type {Webhook} */ row) =>
    html`${switchButton({ label: `Send to ${row.name.slice(0, 100)}`, on: row.enabled, onClick: () => void page.run(() => toggle(row)) })}
      <a class="button" href=${href(['webhooks', row.id])} aria-label=${`Edit ${row.name.slice(0, 100)}`}>Edit</a>
      ${button(page, 'Test', () => test(row), '', `Test ${row.name.slice(0, 100)}`)}
      ${button(page, 'Delete', () => remove(row), 'danger', `Delete ${row.name.slice(0, 100)}`)}`
  return () => {
    if (webhooks === undefined) return loading()
    const create = page.may('webhooks.add')
      ? html`<a class="button primary" href="#/webhooks/new">Add webhook</a>`
      : nothing
    return html`<section class="stack">
      ${heading('Webhooks', create)}
      <p class="muted">Each gets an event when a budget reaches a percent, and when something needs attention. <a href="#/manual/alerts">How to verify what arrives</a></p>
      ${table({
        label: 'Webhooks',
        columns: [
          ...columns,
          ...(page.may('webhooks.update') ? [{ title: '', align: /** @type {const} */ ('end'), cell: actions }] : []),
        ],
        rows: webhooks,
        empty: empty(
          'No webhooks',
          'Alerts are in the log and in the metrics. Add a webhook to send them somewhere.',
          create,
        ),
      })}
      ${heading('Latest alerts')}
      ${table({ label: 'Latest alerts', columns: alertColumns, rows: alerts, empty: empty('No alerts', 'A budget alerts at 80 and 100 percent, or at those that it names (budget.reached). The budget of a key alerts at 80 and 100 percent as a finding (budget_nearly_spent, budget_spent).') })}
    </section>`
  }
}

/** @param {Webhook} webhook */
function stateBadge({ enabled, failing_since: since, has_secret: isSigned }) {
  if (!enabled) return badge('off', 'disabled')
  if (!isSigned) return badge('bad', 'has no secret')
  return since === null ? badge('ok', 'works') : badge('bad', 'fails')
}

/** @type {import('../types.ts').Column<Webhook>[]} */
const columns = [
  {
    title: 'Webhook',
    isHeader: true,
    cell: ({ name, url }) => html`${stored(name, 120)}<div class="muted small">${mono(url, 200)}</div>`,
  },
  { title: 'Events', cell: ({ events }) => (events.includes('*') ? 'all' : mono(events.join(', '), 200)) },
  {
    title: 'State',
    cell: (row) =>
      html`${stateBadge(row)}${row.failing_since === null ? nothing : html`<div class="small">since ${ago(row.failing_since)}: ${stored(row.problem, 300)}</div>`}`,
  },
  { title: 'Waiting', align: 'end', cell: ({ waiting }) => count(waiting) },
  { title: 'Last delivered', cell: ({ delivered_at: delivered }) => ago(delivered) },
]

/** @param {Alert} alert */
function alertText({ type, data }) {
  const { budget, value, each, per, percent, message } = /** @type {Record<string, any>} */ (data)
  if (type !== 'budget.reached') return stored(message, 300)
  const whose = each === undefined ? nothing : html`, ${value === null ? 'erased' : stored(value || '(none)', 100)}`
  return html`${stored(budget.name, 100)}${whose}: ${percent} % of the ${per}`
}

/** @type {import('../types.ts').Column<Alert>[]} */
const alertColumns = [
  { title: 'Time', cell: ({ at }) => ago(at) },
  { title: 'Event', isHeader: true, cell: alertText },
  { title: 'Type', cell: ({ type }) => mono(type, 50) },
  {
    title: 'Deliveries',
    cell: ({ deliveries: { delivered, waiting, given_up: givenUp } }) =>
      html`${delivered > 0 ? badge('ok', `${delivered} delivered`) : nothing} ${waiting > 0 ? badge('off', `${waiting} waiting`) : nothing} ${givenUp > 0 ? badge('bad', `${givenUp} given up`) : nothing}`,
  },
]

/** @param {Page} page @param {string} [id] none for a new one */
const webhookForm = (page, id) =>
  editor(page, {
    ...{ what: 'webhook', path, back: ['webhooks'], act: /** @type {const} */ ('webhooks.add'), table: fields },
    ...(id === undefined ? {} : { self: `${path}/${segment(id)}` }),
    ...(id === undefined ? { title: 'New webhook', submit: 'Add webhook' } : { title: 'Edit webhook', submit: 'Save' }),
    saved: async (response) => {
      const secret = response?.data.secret
      if (secret !== undefined) await showSecret(secret)
    },
  })

/** What the API takes is in admin/kinds/webhook.ts. */
const fields = /** @type {const} */ ({
  name: { form: 'word', isNeeded: true, label: 'Name' },
  url: {
    form: 'word',
    isNeeded: true,
    label: 'URL',
    help: 'With `https:`. Private addresses need LATCHKEY_WEBHOOK_NETWORKS on the server.',
  },
  events: { form: 'lines', label: 'Events', common: ['*'], help: 'One type per line; `*` for all' },
  ca_pem: { form: 'text', label: 'CA certificates (PEM)', help: 'Only for a receiver with a private CA' },
})

/** @param {string} secret */
async function showSecret(secret) {
  await openDialog(
    'The secret of the webhook',
    (
      close,
    ) => html`<div class="body"><p>The receiver verifies with it. This is the only time that it is shown.</p>${code(secret, 'secret')}</div>
      <div class="buttons"><button type="button" class="primary" @click=${() => close()}>I have copied it</button></div>`,
    { stays: true },
  ).closed
}
