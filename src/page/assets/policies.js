// Policies: the list, and one policy with its rules, its exchanges, and the lines that a workload needs.
/** @import { Finding, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page, View } from '../types.ts' */
import { barChart } from './chart.js'
import { get, segment, send } from './client.js'
import { confirm } from './dialog.js'
import { exchangeColumns } from './exchanges.js'
import { findingList, lintBadge, lintOf } from './findings.js'
import { switchButton } from './form.js'
import { html, nothing } from './lit-html.js'
import { readHelp } from './manual.js'
import { createNames } from './names.js'
import { notify } from './notice.js'
import {
  ago,
  at,
  badge,
  callout,
  code,
  copyable,
  count,
  empty,
  facts,
  heading,
  json,
  loading,
  mono,
  select,
  stored,
} from './parts.js'
import { planNotice } from './plan.js'
import { policyFieldList } from './policy-fields.js'
import { policyForm } from './policy-form.js'
import { recipes } from './recipes.js'
import { go, href } from './router.js'
import { createListing, table } from './table.js'

const path = '/workload-identity/policies'

/** @param {Pick<Policy, 'state' | 'inactive_reason'>} policy */
export function stateBadge({ state, inactive_reason: reason }) {
  if (state === 'enabled') return badge('ok', 'enabled')
  return state === 'paused' ? badge('off', 'paused') : badge('bad', 'inactive', reason ?? '')
}

/** Pauses at once; issued tokens stay valid. @param {Page} page @param {Policy} policy */
function enabledSwitch(page, { id, name, enabled }) {
  const act = async () => {
    await send('POST', `${path}/${segment(id)}/${enabled ? 'pause' : 'resume'}`, {})
    notify(
      'ok',
      html`${enabled ? 'Paused' : 'Resumed'} ${stored(name, 80)}. ${enabled ? 'New exchanges stop now; tokens that were issued stay valid until they expire.' : ''}`,
    )
    await page.refresh()
  }
  return switchButton({ label: `Enabled: ${name.slice(0, 80)}`, on: enabled, onClick: () => page.run(act) })
}

/** A switch that is on says that the policy is enabled; other states and who may not switch see the word. @param {Page} page @param {Policy} policy */
function stateOf(page, policy) {
  const badge = stateBadge(policy)
  if (!page.may('policies.update')) return badge
  return html`<span class="actions">${enabledSwitch(page, policy)}${policy.state === 'enabled' ? nothing : badge}</span>`
}

/** @param {Pick<Policy, 'exchanges_24h'>} policy */
function dayCounts({ exchanges_24h: counts }) {
  if (counts === undefined) return '–'
  return html`<span class="line">${count(counts.issued)} issued, <span class=${counts.refused > 0 ? 'refused' : 'muted'}>${count(counts.refused)} refused</span></span>`
}

/** @param {Policy} policy */
function lastRefused({ last_refused_at: time, last_refused_reason: reason }) {
  return time ? html`${ago(time)} <span class="muted mono">${reason}</span>` : ago(time)
}

/** @type {View} */
export const view = (page) => {
  const [id, tab] = page.path
  if (id === undefined) return list(page)
  if (id === 'new') return policyForm(page)
  return tab === 'edit' ? policyForm(page, id) : one(page, id)
}

/** @type {[string, string][]} */
const states = [
  ['', 'Any state'],
  ['enabled', 'enabled'],
  ['paused', 'paused'],
  ['inactive', 'inactive'],
]

/** Says that the list is only of an issuer or a key. @param {Page} page */
function onlyOf(page) {
  const nameOf = createNames(page)
  return () => {
    const { issuer, key } = page.query
    if (issuer === undefined && key === undefined) return nothing
    return html`<p>Only policies
      ${issuer === undefined ? nothing : html` of the issuer ${stored(nameOf('/workload-identity/issuers', issuer), 120)}`}
      ${key === undefined ? nothing : html` that act as the key ${stored(nameOf('/keys', key), 120)}`}: <a href=${href(['policies'])}>show all</a></p>`
  }
}

/** @type {View} */
function list(page) {
  /** @type {Map<string, Finding[]>} */
  let findings = new Map()
  const listing = createListing(page, {
    search: 'Search policies by name',
    load: async ({ search, cursor }) => {
      const { state, issuer, key } = page.query
      const query = { contains: search, state, issuer, key, counts: true, offset: cursor ?? 0, limit: 50 }
      const { data: rows, total_count: total } = await get(path, query)
      void lintOf(rows).then((found) => {
        findings = new Map([...findings, ...found])
        page.update()
      })
      const end = Number(cursor ?? 0) + rows.length
      return { rows: /** @type {Policy[]} */ (rows), next: end < (total ?? 0) ? end : undefined, total }
    },
  })
  const choose = (/** @type {string} */ state) => {
    page.setQuery({ state })
    void listing.restart()
  }
  const chosen = onlyOf(page)
  return () => {
    const { issuer } = page.query
    const create = page.may('policies.create')
      ? html`<a class="button primary" href=${href(['policies', 'new'], { issuer })}>New policy</a>`
      : nothing
    return html`${planNotice(page)}${chosen()}${listing.show({
      label: 'Policies',
      tools: html`${select('State', page.query.state ?? '', states, choose)}<div class="actions push">${create}</div>`,
      empty: empty('No policies', 'A policy states which tokens of an issuer may act as which key.', create),
      columns: [
        {
          title: 'Policy',
          isHeader: true,
          cell: (policy) => html`<a href=${href(['policies', policy.id])}>${stored(policy.name, 120)}</a>`,
          value: ({ name }) => name,
        },
        {
          title: 'Issuer',
          cell: ({ issuer_name, issuer_url }) => html`<span title=${issuer_url}>${stored(issuer_name, 80)}</span>`,
          value: ({ issuer_name }) => issuer_name,
        },
        {
          title: 'Acts as key',
          cell: ({ key_name, role }) =>
            html`${stored(key_name, 80)}${role === null ? nothing : html`<div class="muted small">${role}s sign in</div>`}`,
          value: ({ key_name }) => key_name,
        },
        {
          title: 'State',
          cell: (policy) => stateOf(page, policy),
          value: ({ state }) => state,
        },
        { title: 'Last 24 h', cell: dayCounts, value: ({ exchanges_24h: counts }) => counts?.issued },
        { title: 'Last issued', cell: ({ last_used_at }) => ago(last_used_at), value: (row) => row.last_used_at },
        { title: 'Last refused', cell: lastRefused, value: ({ last_refused_at }) => last_refused_at },
        { title: 'Linter', cell: ({ id }) => lintBadge(findings.get(id)) },
      ],
    })}`
  }
}

/** @param {Page} page @param {string} id */
function one(page, id) {
  /** @type {Policy | undefined} */
  let policy
  /** @type {any} */
  let [exchanges, counts] = [[], undefined]
  /** @type {Finding[] | undefined} */
  let findings
  const self = `${path}/${segment(id)}`
  page.poll(async () => {
    policy = (await get(self)).data
    page.title(policy?.name ?? '')
    ;[{ data: exchanges }, counts] = await Promise.all([
      get('/workload-identity/audit', { policy: id, limit: 10 }),
      get('/workload-identity/audit/counts', { policy: id }),
      readHelp(),
    ])
  }, 5)
  page.poll(async () => {
    findings = (await send('POST', `${path}/lint`, { policy: id })).data[0].findings
  }, 60)
  const remove = async () => {
    if (policy === undefined) return
    const body = html`<p>New exchanges under ${stored(policy.name, 80)} stop at once: workloads that use it get no more tokens.
        ${counts ? html`Tokens issued in the last 24 hours: ${count(issuedIn(counts))}.` : nothing}</p>
      <p>Tokens that were issued stay valid until they expire, at most 15 minutes. The audit log keeps its exchanges.</p>`
    if (!(await confirm({ title: 'Delete this policy?', body, action: 'Delete policy', isDanger: true }))) return
    await send('DELETE', self)
    notify('ok', 'The policy was deleted')
    go(['policies'])
  }
  return () => (policy === undefined ? loading() : details(page, policy, { exchanges, counts, findings, remove }))
}

/** @param {{ data: { issued: number }[] }} counts */
const issuedIn = ({ data }) => data.reduce((sum, { issued }) => sum + issued, 0)

/** @param {Policy} policy */
function checksOf({ required_scope: scope, required_token_type: type }) {
  if (scope === null && type === null) return '–'
  return html`${scope === null ? nothing : html`<code>scopes</code> has ${mono(scope)} `}${type === null ? nothing : html`<code>token_type</code> is ${mono(type)}`}`
}

/** @param {Page} page @param {Policy} policy @param {any} more */
function details(page, policy, { exchanges, counts, findings, remove }) {
  const actions = page.may('policies.update')
    ? html`<label class="actions">${enabledSwitch(page, policy)} Enabled</label>
        <a class="button" href=${href(['try'], { policy: policy.id })}>Try a token</a>
        <a class="button" href=${href(['policies', policy.id, 'edit'])}>Edit</a>
        <button type="button" class="danger" @click=${() => page.run(remove)}>Delete</button>`
    : nothing
  return html`${planNotice(page)}
    ${policy.state === 'inactive' ? callout('bad', html`No token can be exchanged: <span class="mono">${policy.inactive_reason}</span>.`) : nothing}
    <section class="card">
      ${heading(stateBadge(policy), actions)}
      ${policyFacts(policy)}
    </section>
    ${counts === undefined ? nothing : html`<section class="card">${exchangeChart(counts)}</section>`}
    <section class="stack">
      ${heading('Latest exchanges', html`<a href=${href(['exchanges'], { policy: policy.id })}>All exchanges</a>`)}
      ${table({ label: 'Latest exchanges', columns: exchangeColumns.filter(({ title }) => title !== 'Policy'), rows: exchanges, empty: empty('No exchanges yet', 'Use the lines below in a workload.') })}
    </section>
    <section class="card">${heading('Linter')}${findings === undefined ? loading() : findingList(findings)}</section>
    ${policy.tests === null || policy.tests.length === 0 ? nothing : html`<section class="card"><details><summary>Tests that run at each change: ${policy.tests.length}</summary>${code(json(policy.tests), 'tests')}</details></section>`}
    <section class="card">${heading('Use it in a workload')}${recipes(page, policy)}</section>`
}

/** What the table of fields shows by its label, where it is set. @param {Policy} policy @returns {[string, Content][]} */
function factsOf(policy) {
  const values = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (policy))
  return policyFieldList.flatMap(([name, { isFact, label = name }]) =>
    isFact && values[name] ? [[label, stored(String(values[name]), 2_000)]] : [],
  )
}

/** @param {Policy} policy */
function policyFacts(policy) {
  const none = html`<span class="muted">–</span>`
  return facts([
    ...factsOf(policy),
    ['Id (federation_policy_id)', copyable(policy.id, 'policy id')],
    ['Issuer', html`<a href=${href(['issuers', policy.issuer_id])}>${stored(policy.issuer_url)}</a>`],
    ['Audience', mono(policy.audience, 600)],
    ['Subject', policy.subject === null ? none : mono(policy.subject, 600)],
    ['Condition', policy.condition === null ? none : code(policy.condition, 'condition')],
    ['Claim checks', checksOf(policy)],
    ['Acts as key', html`<a href=${href(['keys'], { search: policy.key_name })}>${stored(policy.key_name)}</a>`],
    [
      'Models and presets',
      [...(policy.allowed_models ?? []), ...(policy.allowed_presets ?? [])].join(', ') || 'all that the key may use',
    ],
    [
      'Access token',
      `at most ${count(policy.max_lifetime_seconds / 60)} minutes${policy.replay_protection ? '; each subject token is accepted once' : ''}`,
    ],
    ['Changed', html`<p>${at(policy.updated_at)}, <a href=${href(['changes'], { target: policy.id })}>by whom</a></p>`],
  ])
}

/** @param {{ data: { at: string, issued: number, refused: number }[] }} counts */
function exchangeChart({ data }) {
  return barChart({
    label: 'Exchanges in the last 24 hours',
    labels: data.map(({ at }) => new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })),
    series: [
      { name: 'Issued', tone: 'ok', values: data.map(({ issued }) => issued) },
      { name: 'Refused', tone: 'bad', values: data.map(({ refused }) => refused) },
    ],
  })
}
