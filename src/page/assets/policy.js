// One policy: its rules, its exchanges, its usage, its history, and the lines that a workload needs.
/** @import { Finding, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
import { changeList } from './changes.js'
import { barChart } from './chart.js'
import { get, segment, send } from './client.js'
import { createTabs, detailsHead, doWanted } from './details.js'
import { confirm } from './dialog.js'
import { exchangeList } from './exchanges.js'
import { findingList } from './findings.js'
import { switchButton } from './form.js'
import { html, nothing } from './lit-html.js'
import { clearNotices, notify } from './notice.js'
import { hourOf } from './overview.js'
import { ago, at, badge, callout, code, count, facts, heading, json, loading, mono, stored } from './parts.js'
import { planNotice } from './plan.js'
import { policyFieldList } from './policy-fields.js'
import { recipes } from './recipes.js'
import { remedyOfPolicy } from './remedies.js'
import { go, href } from './router.js'
import { usagePanel } from './usage.js'
import { hourText } from './zone.js'

const path = '/workload-identity/policies'

/** @param {Pick<Policy, 'state' | 'inactive_reason'>} policy */
export function policyBadge({ state, inactive_reason: reason }) {
  if (state === 'enabled') return badge('ok', 'enabled')
  return state === 'paused' ? badge('off', 'paused') : badge('bad', 'inactive', reason ?? '')
}

/** Pauses or resumes at once, with a way back; issued tokens stay valid. @param {Page} page @param {Pick<Policy, 'id' | 'name' | 'enabled'>} policy */
async function toggle(page, { id, name, enabled }) {
  await send('POST', `${path}/${segment(id)}/${enabled ? 'pause' : 'resume'}`, {})
  notify(
    'ok',
    html`${enabled ? 'Paused' : 'Resumed'} ${stored(name, 80)}. ${enabled ? 'New exchanges stop now; tokens that were issued stay valid until they expire.' : ''}`,
    () => page.run(() => toggle(page, { id, name, enabled: !enabled })),
  )
  await page.refresh()
}

/** @param {Page} page @param {Policy} policy */
export function enabledSwitch(page, policy) {
  const { name, enabled } = policy
  const onClick = () => page.run(() => toggle(page, policy))
  return switchButton({ label: `Enabled: ${name.slice(0, 80)}`, on: enabled, onClick })
}

/** @param {{ last_refused_at?: string | null | undefined, last_refused_reason?: string | null | undefined }} row */
export function lastRefused({ last_refused_at: time, last_refused_reason: reason }) {
  return time ? html`${ago(time)} <span class="muted mono">${reason}</span>` : ago(time)
}

/** @param {Page} page @param {string} id */
export function policyDetails(page, id) {
  /** @type {Policy | undefined} */
  let policy
  const self = `${path}/${segment(id)}`
  page.poll(async () => {
    const read = /** @type {Policy} */ ((await get(self)).data)
    policy = read
    page.title(read.name)
    const set = (/** @type {boolean} */ enabled) => () => read.enabled !== enabled && toggle(page, read)
    doWanted(page, { pause: set(false), resume: set(true), delete: remove })
  }, 10)
  const remove = async () => {
    if (policy === undefined) return
    const counts = await get('/workload-identity/audit/counts', { policy: id })
    const body = html`<p>New exchanges under ${stored(policy.name, 80)} stop at once: workloads that use it get no more tokens.
        Tokens issued in the last 24 hours: ${count(issuedIn(counts))}.</p>
      <p>Tokens that were issued stay valid until they expire, at most 15 minutes. The audit log keeps its exchanges.</p>`
    if (!(await confirm({ title: 'Delete this policy?', body, action: 'Delete policy', isDanger: true }))) return
    await send('DELETE', self)
    // What can be undone of it, such as a pause, no longer can.
    clearNotices()
    notify('ok', html`Deleted the policy ${stored(policy.name, 80)}`)
    go(['policies'])
  }
  const tabs = createTabs(page, [
    { name: 'overview', title: 'Overview', open: (tab) => overview(tab, id, () => policy) },
    { name: 'rules', title: 'Rules', open: (tab) => rules(tab, id, () => policy) },
    { name: 'exchanges', title: 'Exchanges', open: (tab) => exchangeList(tab, { policy: id }) },
    { name: 'usage', title: 'Usage', open: (tab) => usagePanel(tab, { policy: id }) },
    { name: 'history', title: 'History', open: (tab) => changeList(tab, id) },
  ])
  return () =>
    policy === undefined
      ? loading()
      : html`${planNotice(page)}
        ${detailsHead({ state: stateOf(page, policy), id, idLabel: 'policy id', actions: actionsOf(page, policy, remove) })}
        ${policy.state === 'inactive' ? callout('bad', html`<div class="actions">No token can be exchanged: <span class="mono">${policy.inactive_reason}</span>. ${remedyOfPolicy(page, policy)}</div>`) : nothing}
        ${tabs()}`
}

/** The switch says whether it is enabled or paused, to who may use it. @param {Page} page @param {Policy} policy */
function stateOf(page, policy) {
  if (!page.may('policies.update')) return policyBadge(policy)
  const { enabled, state } = policy
  return html`<span class="actions">${enabledSwitch(page, policy)} <span aria-hidden="true">${enabled ? 'Enabled' : 'Paused'}</span>${state === 'inactive' ? policyBadge(policy) : nothing}</span>`
}

/** @param {Page} page @param {Policy} policy @param {() => Promise<void>} remove */
function actionsOf(page, policy, remove) {
  const attempt = html`<a class="button" href=${href(['try'], { policy: policy.id })}>Try a token</a>`
  if (!page.may('policies.update')) return [attempt]
  return [
    attempt,
    html`<button type="button" class="danger" @click=${() => page.run(remove)}>Delete</button>`,
    html`<a class="button primary" href=${href(['policies', policy.id, 'edit'])}>Edit</a>`,
  ]
}

/** @param {{ data: { issued: number }[] }} counts */
const issuedIn = ({ data }) => data.reduce((sum, { issued }) => sum + issued, 0)

/** @param {Policy} policy */
function checksOf({ required_scope: scope, required_token_type: type }) {
  if (scope === null && type === null) return '–'
  return html`${scope === null ? nothing : html`<code>scopes</code> has ${mono(scope)} `}${type === null ? nothing : html`<code>token_type</code> is ${mono(type)}`}`
}

/** @param {Page} page @param {string} id @param {() => Policy | undefined} read */
function overview(page, id, read) {
  /** @type {any} */
  let counts
  page.poll(async () => {
    counts = await get('/workload-identity/audit/counts', { policy: id })
  }, 10)
  return () => {
    const policy = read()
    if (policy === undefined) return nothing
    return html`<section class="card">${policyFacts(policy)}</section>
      ${counts === undefined ? nothing : html`<section class="card">${exchangeChart(counts, id)}</section>`}
      <section class="card">${heading('Use it in a workload')}${recipes(page, policy)}</section>`
  }
}

/** @param {Page} page @param {string} id @param {() => Policy | undefined} read */
function rules(page, id, read) {
  /** @type {Finding[] | undefined} */
  let findings
  page.poll(async () => {
    findings = (await send('POST', `${path}/lint`, { policy: id })).data[0].findings
  }, 60)
  return () => {
    const policy = read()
    if (policy === undefined) return nothing
    const { tests } = policy
    return html`<section class="card">${ruleFacts(policy)}</section>
      <section class="card">${heading('Linter')}${findings === undefined ? loading() : findingList(findings)}</section>
      ${tests === null || tests.length === 0 ? nothing : html`<section class="card">${heading(`Tests that run at each change: ${tests.length}`)}${code(json(tests), 'tests')}</section>`}`
  }
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
  return facts([
    [
      'Issuer',
      html`<a href=${href(['issuers', policy.issuer_id])}>${stored(policy.issuer_name)}</a> <span class="muted">${stored(policy.issuer_url)}</span>`,
    ],
    ['Acts as key', html`<a href=${href(['keys', policy.key_id])}>${stored(policy.key_name)}</a>`],
    ...factsOf(policy),
    ['Last issued', ago(policy.last_used_at)],
    ['Last refused', lastRefused(policy)],
    [
      'Changed',
      html`<p>${at(policy.updated_at)}, <a href=${href(['policies', policy.id], { tab: 'history' })}>show the history</a></p>`,
    ],
  ])
}

/** @param {Policy} policy */
function ruleFacts(policy) {
  const none = html`<span class="muted">–</span>`
  return facts([
    ['Audience', mono(policy.audience, 600)],
    ['Subject', policy.subject === null ? none : mono(policy.subject, 600)],
    ['Condition', policy.condition === null ? none : code(policy.condition, 'condition')],
    ['Claim checks', checksOf(policy)],
    [
      'Models and presets',
      [...(policy.allowed_models ?? []), ...(policy.allowed_presets ?? [])].join(', ') || 'all that the key may use',
    ],
    [
      'Access token',
      `at most ${count(policy.max_lifetime_seconds / 60)} minutes${policy.replay_protection ? '; each subject token is accepted once' : ''}`,
    ],
  ])
}

/** @param {{ data: { at: string, issued: number, refused: number }[] }} counts @param {string} id */
function exchangeChart({ data }, id) {
  return barChart({
    label: 'Exchanges in the last 24 hours',
    labels: data.map(({ at }) => hourText(at)),
    series: [
      { name: 'Issued', tone: 'ok', values: data.map(({ issued }) => issued) },
      { name: 'Refused', tone: 'bad', values: data.map(({ refused }) => refused) },
    ],
    choose: (index) => go(['exchanges'], { policy: id, ...hourOf(data[index]?.at ?? '') }),
  })
}
