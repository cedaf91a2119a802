// Get started: the three steps to a first exchange, each with its state; it notices when the first exchange arrives.
/** @import { Exchange, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Content, View } from '../types.ts' */
import { get } from './client.js'
import { html, nothing } from './lit-html.js'
import { readHelp, whatToDo } from './manual.js'
import { ago, badge, callout, loading, stored } from './parts.js'
import { planNotice } from './plan.js'
import { recipes } from './recipes.js'
import { href } from './router.js'

/** @type {View} */
export const view = (page) => {
  /** @type {{ issuers: { id: string, name: string }[], policies: Policy[], exchanges: Exchange[] } | undefined} */
  let found
  page.poll(async () => {
    const [issuers, policies, exchanges] = await Promise.all([
      get('/workload-identity/issuers', { limit: 20 }),
      get('/workload-identity/policies', { limit: 20 }),
      get('/workload-identity/audit', { limit: 1 }),
    ])
    found = { issuers: issuers.data, policies: policies.data, exchanges: exchanges.data }
    if (found.exchanges[0]?.outcome === 'refused') await readHelp()
  }, 3)
  const link = (/** @type {string} */ address, /** @type {string} */ text, isNext = true) =>
    page.may('policies.create')
      ? html`<a class=${isNext ? 'button primary' : 'button'} href=${address}>${text}</a>`
      : nothing
  return () => {
    if (found === undefined) return loading()
    const { issuers, policies, exchanges } = found
    const [issuer] = issuers
    const hasIssued = exchanges[0]?.outcome === 'issued' || policies.some(({ last_used_at: used }) => used)
    const policy = policies.find(({ id }) => id === page.query.policy) ?? policies[0]
    return html`${planNotice(page)}
      <p>A workload exchanges the token that its platform gives it for an access token that lives for at most 15 minutes. Three steps:</p>
      ${step(
        1,
        'Trust an issuer',
        issuer !== undefined,
        html`<p>The identity provider that signs the tokens of your workloads: GitHub Actions, GitLab, a Kubernetes cluster, Keycloak.</p>
        ${issuer === undefined ? nothing : html`<p>You trust ${list(issuers, 'issuers')}.</p>`}
        ${link('#/issuers/new?then=start', issuer === undefined ? 'Add issuer' : 'Add another', issuer === undefined)}`,
      )}
      ${step(
        2,
        'Create a policy',
        policy !== undefined,
        html`<p>It states which tokens may act as which key. The key holds budget and models: ${page.may('keys.create') ? html`<a href="#/keys/new">create one</a>` : 'one'} for each workload. The editor asks for organization and repository, or namespace and account, and writes the rules.</p>
        ${policy === undefined ? nothing : html`<p><a href=${href(['policies', policy.id])}>${stored(policy.name, 80)}</a> acts as ${stored(policy.key_name, 80)}.</p>`}
        ${issuer === undefined ? nothing : link('#/policies/new', policy === undefined ? 'Create policy' : 'Create another', policy === undefined)}`,
      )}
      ${step(
        3,
        'Exchange a token',
        hasIssued,
        policy === undefined
          ? html`<p>The lines for your platform appear here once you have a policy.</p>`
          : html`<div role="status">${arrived(exchanges[0])}</div>${recipes(page, policy)}`,
      )}`
  }
}

/** @param {readonly { id: string, name: string }[]} rows @param {string} view */
function list(rows, view) {
  return rows.map(
    ({ id, name }, index) => html`${index === 0 ? nothing : ', '}<a href=${href([view, id])}>${stored(name, 80)}</a>`,
  )
}

/** @param {number} number @param {string} title @param {boolean} isDone @param {Content} content */
function step(number, title, isDone, content) {
  return html`<section class="card step"><div class="heading"><h2><span aria-hidden="true">${number}</span> ${title}</h2>${isDone ? badge('ok', 'done') : badge('off', 'to do')}</div>${content}</section>`
}

/** @param {Exchange | undefined} exchange */
function arrived(exchange) {
  if (exchange === undefined)
    return html`<p>Waiting for the first exchange: run the lines below in a workload, and it appears here.</p>`
  const link = html`<a href=${href(['exchanges', exchange.request_id])}>${ago(exchange.at)}</a>`
  return exchange.outcome === 'issued'
    ? callout('ok', html`The latest exchange issued a token, ${link}. Your workload can call inference with it.`)
    : callout(
        'bad',
        html`The latest exchange was refused, ${link}: <span class="mono">${exchange.reason}</span>. ${whatToDo(exchange.reason)}`,
      )
}
