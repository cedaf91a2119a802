// Exchanges: the list as it grows, with filters; and one exchange with the reason and what to do about it.
/** @import { Exchange } from '../../admin/transport/response-types.ts' */
/** @import { Column, Content, Page, View } from '../types.ts' */
/** @import { Filter } from './filters.js' */
import { get, segment, send } from './client.js'
import { detailsHead } from './details.js'
import { confirm } from './dialog.js'
import { namesOf, timeFilter, times } from './filters.js'
import { createPolicyFrom } from './from-token.js'
import { createListing } from './listing.js'
import { html, nothing } from './lit-html.js'
import { knownReasons, readHelp, whatToDo } from './manual.js'
import { notify } from './notice.js'
import { ago, at, badge, brief, button, callout, code, empty, facts, json, loading, mono, stored } from './parts.js'
import { planNotice } from './plan.js'
import { proofButton } from './proof.js'
import { remedyOfRefusal } from './remedies.js'
import { goInstead, href } from './router.js'

const path = '/workload-identity/audit'

/** @param {Exchange} exchange */
function outcome({ outcome: result }) {
  return result === 'issued' ? badge('ok', 'issued') : badge('bad', 'refused')
}

/** @type {Column<Exchange>[]} */
const columns = [
  {
    title: 'Time',
    isHeader: true,
    cell: (exchange) => html`<a href=${href(['exchanges', exchange.request_id])}>${ago(exchange.at)}</a>`,
  },
  { title: 'Outcome', cell: outcome },
  { title: 'Policy', cell: ({ policy_name, policy_named }) => stored(policy_name ?? policy_named, 80) },
  {
    title: 'Issuer',
    cell: ({ issuer_name, issuer_url }) =>
      html`<span title=${issuer_url ?? nothing}>${stored(issuer_name ?? issuer_url, 60)}</span>`,
  },
  { title: 'Subject', cell: ({ subject }) => brief(subject, 'subject', 44) },
  {
    title: 'Why, and what to do',
    cell: ({ reason, detail }) =>
      reason === null
        ? html`<span class="muted">–</span>`
        : html`<span class="rest" title=${detail ?? nothing}><span class="mono">${reason}</span> ${whatToDo(reason)}</span>`,
  },
]

/** @type {readonly Filter[]} */
const filters = [
  timeFilter,
  {
    name: 'outcome',
    label: 'Outcome',
    options: [
      ['', 'Any'],
      ['issued', 'Issued'],
      ['refused', 'Refused'],
    ],
  },
  { name: 'reason', label: 'Reason', complete: async (text) => knownReasons().filter((each) => each.includes(text)) },
  { name: 'policy', label: 'Policy', complete: namesOf('/workload-identity/policies') },
  { name: 'issuer', label: 'Issuer', complete: namesOf('/workload-identity/issuers') },
  { name: 'key', label: 'Key', complete: namesOf('/keys') },
  { name: 'subject', label: 'Subject' },
]

/** @type {View} */
export const view = (page) => (page.path[0] === undefined ? list(page) : one(page, page.path[0]))

/**
 * The exchanges of a policy, an issuer or a key, or all. @param {Page} page
 * @param {{ policy?: string, issuer?: string, key?: string }} [only] @returns {() => Content}
 */
export function exchangeList(page, only = {}) {
  const read = (/** @type {object} */ more) => {
    const { outcome, reason, policy, issuer, key, subject } = page.query
    return get(path, { outcome, reason, policy, issuer, key, subject, ...times(page.query), ...only, ...more })
  }
  const listing = createListing(page, {
    seconds: 3,
    file: 'exchanges',
    filters: filters.filter(({ name }) => !Object.hasOwn(only, name)),
    load: async ({ cursor, limit }) => {
      const [{ data: rows, more_before_id: more }] = await Promise.all([read({ before_id: cursor, limit }), readHelp()])
      return {
        rows: /** @type {Exchange[]} */ (rows),
        next: more ?? (rows.length === limit ? rows.at(-1).id : undefined),
      }
    },
    newer: async ({ id }) => (await read({ after_id: id, limit: 50 })).data,
  })
  const isShown = ({ title = '' }) => !Object.hasOwn(only, title.toLowerCase())
  return () =>
    listing.show({
      label: 'Exchanges',
      columns: columns.filter(isShown),
      empty: empty(
        'No exchanges',
        'Nothing matches, or no workload has asked for a token yet. New exchanges appear here by themselves.',
        html`<a class="button" href="#/start">Show me the lines for a workload</a>`,
      ),
    })
}

/** @param {Page} page */
function list(page) {
  const shown = exchangeList(page)
  return () => html`${planNotice(page)}${shown()}`
}

/** @param {Page} page @param {string} id */
function one(page, id) {
  page.title('Exchange')
  /** @type {any} */
  let found
  page.poll(async () => {
    ;[{ data: found }] = await Promise.all([get(`${path}/${segment(id)}`), readHelp()])
    // The id of a request can be that of an inference request too.
    if (found.kind === 'inference') goInstead(['requests', id])
  }, 60)
  return () => {
    if (found === undefined || found.kind === 'inference') return loading()
    const { reason, detail, step, policy_id: policy } = found
    const attempt =
      reason === null ? nothing : html`<a class="button" href=${href(['try'], { policy })}>Try a token</a>`
    const actions = [
      ...[proofButton(page, { request_id: found.request_id }), fromExchange(page, found)],
      ...[attempt, remedyOfRefusal(page, found)],
    ]
    return html`${detailsHead({ state: outcome(found), id: found.request_id, idLabel: 'request id', actions })}
      ${reason === null ? nothing : callout('bad', html`Refused at the step <strong>${step}</strong>: <span class="mono">${reason}</span>${detail === null ? '' : html` (${stored(detail, 2_000)})`}. ${whatToDo(reason)}`)}
      <section class="card">${exchangeFacts(found)}</section>`
  }
}

/** @param {Exchange} found */
function exchangeFacts(found) {
  const { policy_id: policy, issuer_id: issuer } = found
  return facts([
    ['Time', html`${at(found.at)} (${ago(found.at)})`],
    [
      'Policy',
      policy === null
        ? stored(found.policy_named)
        : html`<a href=${href(['policies', policy])}>${stored(found.policy_name)}</a>`,
    ],
    [
      'Issuer',
      issuer === null
        ? stored(found.issuer_url)
        : html`<a href=${href(['issuers', issuer])}>${stored(found.issuer_name ?? found.issuer_url)}</a> <span class="muted">${stored(found.issuer_url)}</span>`,
    ],
    ['Subject', mono(found.subject, 600)],
    ['Grant', mono(found.grant)],
    ['Token id (jti)', mono(found.subject_token_id)],
    [
      'Access token',
      found.access_token_id === null
        ? '–'
        : html`${mono(found.access_token_id)}, expires ${at(found.access_token_expires_at)}`,
    ],
    ['Client address', mono(found.client_address)],
  ])
}

/** A test of its policy, and a new policy, from what was recorded of an exchange. @param {Page} page @param {any} found */
function fromExchange(page, { request_id: id, policy_id: policy, recorded_claims: recorded, issuer_url, subject }) {
  if (recorded == null || !page.may('policies.update')) return nothing
  const claims = { ...recorded.claims, sub: subject }
  const create = async () => createPolicyFrom({ issuerUrl: issuer_url, claims })
  return html`${policy === null ? nothing : button(page, 'Make a test', () => addTest(id, policy), '', 'Make a test of this exchange')}
    ${issuer_url === null || recorded.key !== undefined ? nothing : button(page, 'Create a policy', create, '', 'Create a policy from this exchange')}`
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
