// Policies: the list, with what can be done to several at once. policy.js shows one.
/** @import { Finding, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Page, View } from '../types.ts' */
import { forEach } from './bulk.js'
import { segment, send } from './client.js'
import { confirm, nameList } from './dialog.js'
import { namesOf, unused, unusedFilter } from './filters.js'
import { lintBadge, lintOf } from './findings.js'
import { createListing, partOf } from './listing.js'
import { html, nothing } from './lit-html.js'
import { createNames } from './names.js'
import { count, empty, lastUse, stored } from './parts.js'
import { planNotice } from './plan.js'
import { enabledSwitch, lastRefused, policyBadge, policyDetails } from './policy.js'
import { policyForm } from './policy-form.js'
import { href } from './router.js'

const path = '/workload-identity/policies'

/** A switch that is on says that the policy is enabled; other states and who may not switch see the word. @param {Page} page @param {Policy} policy */
function stateOf(page, policy) {
  const badge = policyBadge(policy)
  if (!page.may('policies.update')) return badge
  return html`<span class="actions">${enabledSwitch(page, policy)}${policy.state === 'enabled' ? nothing : badge}</span>`
}

/** @param {Pick<Policy, 'exchanges_24h'>} policy */
function dayCounts({ exchanges_24h: counts }) {
  if (counts === undefined) return '–'
  return html`<span class="line">${count(counts.issued)} issued, <span class=${counts.refused > 0 ? 'refused' : 'muted'}>${count(counts.refused)} refused</span></span>`
}

/** @type {View} */
export const view = (page) => {
  const [id, tab] = page.path
  if (id === undefined) return list(page)
  if (id === 'new') return policyForm(page)
  return tab === 'edit' ? policyForm(page, id) : policyDetails(page, id)
}

const issuersPath = '/workload-identity/issuers'

/** @type {readonly import('./filters.js').Filter[]} */
const filters = [
  {
    name: 'state',
    label: 'State',
    options: [
      ['', 'Any'],
      ['enabled', 'Enabled'],
      ['paused', 'Paused'],
      ['inactive', 'Inactive'],
    ],
  },
  { name: 'issuer', label: 'Issuer', complete: namesOf(issuersPath) },
  { name: 'key', label: 'Key', complete: namesOf('/keys') },
  unusedFilter,
]

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
const hash = /^[\da-f]{64}$/

/** Says that the list is only of an issuer or a key. @param {Page} page */
function onlyOf(page) {
  const nameOf = createNames(page)
  return () => {
    const { issuer, key } = page.query
    // A name is in the filter already.
    const isId = (/** @type {string | undefined} */ text = '') => uuid.test(text) || hash.test(text)
    const [ofIssuer, ofKey] = [isId(issuer), isId(key)]
    if (!ofIssuer && !ofKey) return nothing
    return html`<p>Only policies
      ${ofIssuer ? html` of the issuer ${stored(nameOf(issuersPath, issuer ?? ''), 120)}` : nothing}
      ${ofKey ? html` that act as the key ${stored(nameOf('/keys', key ?? ''), 120)}` : nothing}: <a href=${href(['policies'])}>show all</a></p>`
  }
}

/** An export has more, which nobody sees. */
const rowsLinted = 50

/** What can be done to several policies. @param {Page} page @returns {import('./bulk.js').BulkAction<Policy>[]} */
function bulkOf(page) {
  const set =
    (/** @type {'pause' | 'resume'} */ act) =>
    (/** @type {Policy} */ { id }) =>
      send('POST', `${path}/${segment(id)}/${act}`, {})
  return [
    {
      title: 'Pause',
      act: (rows) => {
        const words = (/** @type {string} */ number) => `${number} paused: new exchanges stop now`
        return forEach(
          page,
          rows.filter(({ enabled }) => enabled),
          set('pause'),
          { words, undo: set('resume') },
        )
      },
    },
    {
      title: 'Resume',
      act: (rows) =>
        forEach(
          page,
          rows.filter(({ enabled }) => !enabled),
          set('resume'),
          { words: (number) => `${number} resumed`, undo: set('pause') },
        ),
    },
    {
      title: 'Delete',
      isDanger: true,
      act: async (rows) => {
        const body = html`<p>New exchanges under them stop at once. This cannot be undone; pausing can.</p>${nameList(rows.map(({ name }) => name))}`
        const title = `Delete ${count(rows.length)} ${rows.length === 1 ? 'policy' : 'policies'}?`
        if (await confirm({ title, body, action: 'Delete', isDanger: true }))
          await forEach(page, rows, ({ id }) => send('DELETE', `${path}/${segment(id)}`), {
            words: (number) => `${number} deleted`,
          })
      },
    },
  ]
}

/** @type {View} */
function list(page) {
  /** @type {Map<string, Finding[]>} */
  let findings = new Map()
  const listing = createListing(page, {
    search: 'Search policies by name',
    filters,
    file: 'policies',
    load: async (asked) => {
      const { state, issuer, key } = page.query
      const query = { state, issuer, key, ...unused(page.query), counts: true }
      /** @type {import('./listing.js').Part<Policy>} */
      const part = await partOf(path, query, asked)
      void lintOf(part.rows.slice(0, rowsLinted)).then((found) => {
        findings = new Map([...findings, ...found])
        page.update()
      })
      return part
    },
  })
  const chosen = onlyOf(page)
  return () => {
    const { issuer } = page.query
    const create = page.may('policies.create')
      ? html`<a class="button primary" href=${href(['policies', 'new'], { issuer })}>New policy</a>`
      : nothing
    return html`${planNotice(page)}${chosen()}${listing.show({
      label: 'Policies',
      tools: html`<div class="actions push">${create}</div>`,
      name: ({ name }) => name,
      bulk: page.may('policies.update') ? bulkOf(page) : [],
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
        { title: 'Last issued', cell: lastUse, value: (row) => row.last_used_at },
        { title: 'Last refused', cell: lastRefused, value: ({ last_refused_at }) => last_refused_at },
        { title: 'Linter', cell: ({ id }) => lintBadge(findings.get(id)) },
      ],
    })}`
  }
}
