// Issuers: the list; one issuer with its keys; and the form that adds or changes one, with a test before it is saved.
/** @import { Issuer, Verification } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page, View } from '../types.ts' */
import { changeList } from './changes.js'
import { get, segment, send } from './client.js'
import { createTabs, detailsHead } from './details.js'
import { confirm, nameList } from './dialog.js'
import { exchangeList } from './exchanges.js'
import { unused, unusedFilter } from './filters.js'
import { issuerFieldList } from './issuer-fields.js'
import { issuerForm, issuersPath, keyTable, sharedAnswers, sources, verified } from './issuer-form.js'
import { createListing, partOf } from './listing.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { ago, at, badge, brief, copyable, count, empty, facts, lastUse, loading, mono, stored } from './parts.js'
import { planNotice } from './plan.js'
import { lastRefused } from './policy.js'
import { go, href } from './router.js'

const soonMilliseconds = 30 * 86_400_000

/** @type {View} */
export const view = (page) => {
  const [id, tab] = page.path
  if (id === undefined) return list(page)
  if (id === 'new') return issuerForm(page)
  return tab === 'edit' ? issuerForm(page, id) : one(page, id)
}

/** @param {Issuer} issuer */
function keysOf({
  keys,
  key_source: source,
  keys_failing_since: since,
  keys_fetched_at: fetched,
  keys_fresh_until: fresh,
  keys_fetched_since_start: isFetched,
}) {
  if (source === 'jwks') return html`${count(keys.length)} pasted`
  if (since !== null)
    return html`${count(keys.length)}, ${ago(fetched)} ${badge('bad', 'fetch fails')} <span class="muted">since ${ago(since)}</span>`
  if (fetched === null) return badge('off', 'not fetched yet')
  const isStale = fresh !== null && Date.parse(fresh) < Date.now()
  const note = isFetched === false ? 'not fetched since the start' : isStale ? 'fetched again when needed' : undefined
  return html`${count(keys.length)}, ${ago(fetched)} ${note === undefined ? nothing : badge('info', note)}`
}

/** @param {Issuer} issuer */
function fetchedAgain({ keys_fresh_until: fresh, keys_fetched_since_start: isFetched }) {
  if (fresh === null) return nothing
  const when = Date.parse(fresh) < Date.now() ? html`with the next token` : html`after ${at(fresh)}`
  return html`${isFetched === false ? ', not since the server started' : nothing}; fetched again ${when}, or when a token names an unknown key`
}

/** Since when and why its keys cannot be fetched, and when its tokens begin to be refused. @param {Issuer} issuer @returns {[string, Content]} */
function failure({ keys_failing_since: since, keys_failure: why, keys_usable_until: until }) {
  const isOver = until === null || Date.parse(until) <= Date.now()
  const tokens = isOver ? 'Its tokens are refused.' : html`Its tokens are refused from ${at(until)} on.`
  return ['Fetch fails', html`since ${ago(since)}${why === null ? nothing : html`: ${stored(why, 600)}`}. ${tokens}`]
}

/** When something expires, with a warning a month before. @param {string | null | undefined} time */
function expiry(time) {
  if (!time) return html`<span class="muted">–</span>`
  const left = Date.parse(time) - Date.now()
  return html`${left < 0 ? badge('bad', 'expired') : left < soonMilliseconds ? badge('warn', 'expires soon') : nothing} ${at(time)}`
}

/** @param {Page} page */
function list(page) {
  const listing = createListing(page, {
    search: 'Search issuers by name',
    filters: [unusedFilter],
    file: 'issuers',
    load: /** @returns {Promise<import('./listing.js').Part<Issuer>>} */ (asked) =>
      partOf(issuersPath, unused(page.query), asked),
  })
  const add = page.may('issuers.add') ? html`<a class="button primary" href="#/issuers/new">Add issuer</a>` : nothing
  return () =>
    html`${planNotice(page)}${listing.show({
      label: 'Issuers',
      tools: html`<div class="actions push">${add}</div>`,
      empty: empty(
        'No issuers',
        'An issuer is an identity provider whose tokens you trust: GitHub Actions, GitLab, a Kubernetes cluster, Keycloak.',
        add,
      ),
      columns: [
        {
          title: 'Issuer',
          isHeader: true,
          cell: ({ id, name }) => html`<a href=${href(['issuers', id])}>${stored(name, 120)}</a>`,
          value: ({ name }) => name,
        },
        {
          title: 'URL',
          cell: ({ issuer_url }) => brief(issuer_url, 'URL', 48),
          value: ({ issuer_url }) => issuer_url,
        },
        { title: 'Keys from', cell: ({ key_source }) => sources[key_source], value: ({ key_source }) => key_source },
        { title: 'Keys', cell: keysOf },
        { title: 'CA expires', cell: ({ ca_expires_at }) => expiry(ca_expires_at), value: (row) => row.ca_expires_at },
        { title: 'Last used', cell: lastUse, value: (row) => row.last_used_at },
        {
          title: 'Last invalid token',
          value: ({ last_refused_at }) => last_refused_at,
          cell: lastRefused,
        },
      ],
    })}`
}

/** @param {Page} page @param {string} id */
function one(page, id) {
  /** @type {Issuer | undefined} */
  let issuer
  /** @type {Verification | undefined} */
  let result
  const self = `${issuersPath}/${segment(id)}`
  page.poll(async () => {
    issuer = (await get(self)).data
    page.title(issuer?.name ?? '')
  })
  const verify = async () => {
    result = (await send('POST', `${self}/verify`, {})).data
  }
  const refresh = async () => {
    issuer = (await send('POST', `${self}/refresh`, {})).data
    notify('ok', 'The keys were fetched')
  }
  const remove = async () => {
    if (!(await confirmDelete(id))) return
    await send('DELETE', self)
    notify('ok', html`Deleted the issuer ${stored(issuer?.name, 80)}`)
    go(['issuers'])
  }
  const tabs = createTabs(page, [
    { name: 'overview', title: 'Overview', open: () => () => overview(issuer) },
    { name: 'keys', title: 'Keys', open: () => () => keyTable(issuer?.keys ?? []) },
    { name: 'exchanges', title: 'Exchanges', open: (tab) => exchangeList(tab, { issuer: id }) },
    { name: 'history', title: 'History', open: (tab) => changeList(tab, id) },
  ])
  const button = (/** @type {string} */ text, /** @type {() => Promise<void>} */ act, kind = '') =>
    html`<button type="button" class=${kind} @click=${() => page.run(act)}>${text}</button>`
  return () => {
    if (issuer === undefined) return loading()
    const actions = page.may('issuers.update')
      ? [
          button('Test', verify),
          issuer.key_source === 'jwks' ? nothing : button('Fetch keys now', refresh),
          button('Delete', remove, 'danger'),
          html`<a class="button primary" href=${href(['issuers', id, 'edit'])}>Edit</a>`,
        ]
      : []
    const state =
      issuer.keys_failing_since !== null
        ? badge('bad', 'fetch fails')
        : issuer.keys.length > 0
          ? badge('ok', 'has keys')
          : badge('warn', 'no keys yet')
    return html`${planNotice(page)}${detailsHead({ state, id, idLabel: 'issuer id', actions })}
      ${result === undefined ? nothing : verified(result)}
      ${tabs()}`
  }
}

/** @param {Issuer | undefined} issuer */
function overview(issuer) {
  if (issuer === undefined) return nothing
  const { id } = issuer
  return html`<section class="card">${issuerFacts(issuer)}</section>
    <p><a href=${href(['policies'], { issuer: id })}>Policies of this issuer</a>; <a href=${href(['policies', 'new'], { issuer: id })}>create one</a>.</p>`
}

/** Shows which policies stop, and asks. @param {string} id */
async function confirmDelete(id) {
  const { data, total_count: total } = await get('/workload-identity/policies', {
    issuer: id,
    state: 'enabled',
    limit: 10,
  })
  const names = data.map((/** @type {{ name: string }} */ { name }) => name)
  const body = html`<p>${total ? html`New exchanges under ${count(total)} enabled ${total === 1 ? 'policy' : 'policies'} stop at once:` : 'No enabled policy uses it.'}</p>
    ${nameList(names)}${total > names.length ? html`<p>and ${count(total - names.length)} more</p>` : nothing}
    <p>Tokens that were issued stay valid until they expire. Policies of a deleted issuer cannot be repaired: they need a new issuer.</p>`
  return confirm({ title: 'Delete this issuer?', body, action: 'Delete issuer', isDanger: true })
}

/** Whole hours, or seconds. @param {unknown} seconds */
function duration(seconds) {
  if (typeof seconds !== 'number') return undefined
  const hours = seconds / 3_600
  return seconds > 0 && Number.isInteger(hours)
    ? `${count(hours)} ${hours === 1 ? 'hour' : 'hours'}`
    : `${count(seconds)} s`
}

/** What the table of fields shows, as a duration or text. @param {Record<string, unknown>} issuer @returns {[string, string][]} */
function factsOf(issuer) {
  return issuerFieldList.flatMap(([name, { fact, none = '' }]) =>
    fact ? [[fact, duration(issuer[name]) ?? String(issuer[name] ?? none)]] : [],
  )
}

/** @param {Issuer} issuer */
function issuerFacts(issuer) {
  return facts([
    ['Issuer URL (iss)', copyable(issuer.issuer_url, 'issuer URL')],
    ['Keys from', html`${sources[issuer.key_source]} ${issuer.jwks_url === null ? nothing : mono(issuer.jwks_url)}`],
    ['Fetched', issuer.key_source === 'jwks' ? 'pasted' : html`${ago(issuer.keys_fetched_at)}${fetchedAgain(issuer)}`],
    ...(issuer.keys_failing_since === null ? [] : [failure(issuer)]),
    ['Keys expire', expiry(issuer.keys_expire_at)],
    ['CA expires', expiry(issuer.ca_expires_at)],
    ...factsOf(issuer),
    ['Strangers get its tokens', sharedAnswers[issuer.shared === null ? '' : issuer.shared ? 'true' : 'false']],
    ['Last used', ago(issuer.last_used_at)],
    ['Last invalid token', lastRefused(issuer)],
  ])
}
