// Exchanges: the list as it grows, with filters; and one exchange with the reason and what to do about it.
/** @import { Exchange } from '../../admin/transport/response-types.ts' */
/** @import { Column, Page, View } from '../types.ts' */
import { get, segment, send } from './client.js'
import { confirm } from './dialog.js'
import { field } from './form.js'
import { createPolicyFrom } from './from-token.js'
import { html, nothing } from './lit-html.js'
import { readHelp, whatToDo } from './manual.js'
import { notify } from './notice.js'
import {
  ago,
  at,
  badge,
  brief,
  button,
  callout,
  code,
  copyable,
  empty,
  facts,
  json,
  loading,
  mono,
  stored,
} from './parts.js'
import { planNotice } from './plan.js'
import { proofButton } from './proof.js'
import { remedyOfRefusal } from './remedies.js'
import { go, href } from './router.js'
import { createListing } from './table.js'

const path = '/workload-identity/audit'

/** @param {Exchange} exchange */
function outcome({ outcome: result }) {
  return result === 'issued' ? badge('ok', 'issued') : badge('bad', 'refused')
}

/** @type {Column<Exchange>[]} */
export const exchangeColumns = [
  {
    title: 'Time',
    isHeader: true,
    cell: (exchange) => html`<a href=${href(['exchanges', exchange.request_id])}>${ago(exchange.at)}</a>`,
  },
  { title: 'Outcome', cell: outcome },
  { title: 'Policy', cell: ({ policy_name, policy_named }) => stored(policy_name ?? policy_named, 80) },
  {
    title: 'Subject',
    cell: ({ subject, issuer_url }) =>
      html`${brief(subject, 'subject', 48)}${issuer_url === null ? nothing : html` <span class="muted small">${stored(issuer_url.replace(/^https:\/\//, ''), 40)}</span>`}`,
  },
  {
    title: 'Why, and what to do',
    cell: ({ reason, detail }) =>
      reason === null
        ? html`<span class="muted">–</span>`
        : html`<span title=${detail ?? nothing}><span class="mono">${reason}</span> <span class="muted">${detail === null ? whatToDo(reason) : stored(detail, 160)}</span></span>`,
  },
]

/** @type {View} */
export const view = (page) => (page.path[0] === undefined ? list(page) : one(page, page.path[0]))

/** @param {Page} page */
function list(page) {
  const listing = createListing(page, {
    seconds: 3,
    load: async ({ cursor }) => {
      const { outcome, reason, policy, subject } = page.query
      const [{ data: rows, more_before_id: more }] = await Promise.all([
        get(path, { outcome, reason, policy, subject, before_id: cursor, limit: 50 }),
        readHelp(),
      ])
      return { rows: /** @type {Exchange[]} */ (rows), next: more ?? (rows.length === 50 ? rows.at(-1).id : undefined) }
    },
  })
  const filter = (/** @type {string} */ name) => (/** @type {string} */ value) => {
    page.setQuery({ [name]: value })
    void listing.restart()
  }
  /** @param {SubmitEvent} event */
  const find = (event) => {
    event.preventDefault()
    const id = new FormData(/** @type {HTMLFormElement} */ (event.target)).get('request')
    if (id) go(['exchanges', String(id).trim()])
  }
  const jump = (/** @type {string} */ text) => {
    if (/^\s*[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\s*$/i.test(text)) go(['exchanges', text.trim()])
  }
  return () => html`${planNotice(page)}
    <div class="filters">
      ${field({
        label: 'Outcome',
        name: 'outcome',
        value: page.query.outcome ?? '',
        options: [
          ['', 'Any'],
          ['issued', 'Issued'],
          ['refused', 'Refused'],
        ],
        onInput: filter('outcome'),
      })}
      ${[
        ['policy', 'Policy'],
        ['reason', 'Reason'],
        ['subject', 'Subject'],
      ].map(([name = '', label = '']) =>
        field({ label, name, value: page.query[name] ?? '', onInput: () => {}, onChange: filter(name) }),
      )}
      <form role="search" @submit=${find}>${field({ label: 'Request id', name: 'request', value: '', onInput: jump, mono: true, placeholder: 'paste one' })}</form>
    </div>
    ${listing.show({
      label: 'Exchanges',
      columns: exchangeColumns,
      empty: empty(
        'No exchanges',
        'Nothing matches, or no workload has asked for a token yet. New exchanges appear here by themselves.',
        html`<a class="button" href="#/start">Show me the lines for a workload</a>`,
      ),
    })}`
}

/** @param {Page} page @param {string} id */
function one(page, id) {
  page.title('Exchange')
  /** @type {any} */
  let found
  page.poll(async () => {
    ;[{ data: found }] = await Promise.all([get(`${path}/${segment(id)}`), readHelp()])
  }, 60)
  return () => {
    if (found === undefined) return loading()
    if (found.kind === 'inference')
      return html`${callout('info', 'This request id belongs to an inference request.')}
        <section class="card">${facts(Object.entries(found).map(([name, value]) => [name, mono(value)]))}</section>`
    const { reason, detail, step, policy_id: policy } = found
    return html`${reason === null ? nothing : callout('bad', html`Refused at the step <strong>${step}</strong>: <span class="mono">${reason}</span>${detail === null ? '' : html` (${stored(detail, 2_000)})`}. ${whatToDo(reason)}`)}
      <section class="card">
        ${facts([
          ['Outcome', outcome(found)],
          ['Time', html`${at(found.at)} (${ago(found.at)})`],
          ['Request id', copyable(found.request_id, 'request id')],
          [
            'Policy',
            policy === null
              ? stored(found.policy_named)
              : html`<a href=${href(['policies', policy])}>${stored(found.policy_name)}</a>`,
          ],
          ['Grant', mono(found.grant)],
          ['Subject', mono(found.subject, 600)],
          ['Issuer', stored(found.issuer_url)],
          ['Token id (jti)', mono(found.subject_token_id)],
          [
            'Access token',
            found.access_token_id === null
              ? '–'
              : html`${mono(found.access_token_id)}, expires ${at(found.access_token_expires_at)}`,
          ],
          ['Client address', mono(found.client_address)],
        ])}
        <div class="actions">${remedyOfRefusal(page, found)}
          ${reason === null ? nothing : html`<a class="button" href=${href(['try'], { policy })}>Try a token</a>`}
          ${fromExchange(page, found)}${proofButton(page, { request_id: found.request_id })}</div>
      </section>`
  }
}

/** A test of its policy, and a new policy, from what was recorded of an exchange. @param {Page} page @param {any} found */
function fromExchange(page, { request_id: id, policy_id: policy, recorded_claims: recorded, issuer_url, subject }) {
  if (recorded == null || !page.may('policies.update')) return nothing
  const claims = { ...recorded.claims, sub: subject }
  const create = async () => createPolicyFrom({ issuerUrl: issuer_url, claims })
  return html`${policy === null ? nothing : button(page, 'Make a test of this exchange', () => addTest(id, policy))}
    ${issuer_url === null || recorded.key !== undefined ? nothing : button(page, 'Create a policy from this exchange', create)}`
}

/** @param {string} requestId @param {string} policy */
async function addTest(requestId, policy) {
  const self = `/workload-identity/policies/${segment(policy)}`
  const { test } = (await get(`${path}/${segment(requestId)}/test`)).data
  const body = html`<p>The policy keeps this test, and every later edit must keep its outcome:</p>${code(json(test), 'test')}`
  if (!(await confirm({ title: 'Make a test of this exchange?', body, action: 'Add the test' }))) return
  const { data, etag } = await get(self)
  await send('PATCH', self, { tests: [...(data.tests ?? []), test] }, { etag })
  notify('ok', html`The test was added to <a href=${href(['policies', policy])}>${stored(data.name, 80)}</a>`)
}
