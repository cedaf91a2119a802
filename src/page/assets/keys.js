// Keys: the list with their limits as bars, and what can be done to several at once. key.js shows one.
/** @import { Key } from '../../admin/transport/response-types.ts' */
/** @import { Page, View } from '../types.ts' */
import { forEach } from './bulk.js'
import { get, segment, send } from './client.js'
import { confirm, nameList } from './dialog.js'
import { unused, unusedFilter } from './filters.js'
import { invite } from './invite.js'
import { budgetCell, keyBadge, keyDetails, rates } from './key.js'
import { keyForm } from './key-form.js'
import { createListing, partOf } from './listing.js'
import { html, nothing } from './lit-html.js'
import { count, empty, lastUse, stored } from './parts.js'
import { href } from './router.js'

const path = '/keys'

/** @type {View} */
export const view = (page) => {
  const [hash, tab] = page.path
  if (hash === undefined) return list(page)
  if (hash === 'new') return keyForm(page)
  if (hash === 'invite') return invite(page)
  return tab === 'edit' ? keyForm(page, hash) : keyDetails(page, hash)
}

/** @type {readonly import('./filters.js').Filter[]} */
const filters = [
  {
    name: 'kind',
    label: 'Kind',
    options: [
      ['', 'Any'],
      ['inference', 'Inference'],
      ['management', 'Management'],
      ['management_read_only', 'Read-only management'],
    ],
  },
  {
    name: 'state',
    label: 'State',
    options: [
      ['', 'Any'],
      ['enabled', 'Enabled'],
      ['disabled', 'Disabled'],
      ['expired', 'Expired'],
    ],
  },
  { name: 'owner', label: 'User', complete: owners },
  unusedFilter,
]

const keysRead = 100

/** Users who have keys. @param {string} text */
async function owners(text) {
  const { data } = await get(path, { limit: keysRead })
  const names = new Set(/** @type {Key[]} */ (data).map(({ owner }) => owner ?? ''))
  return [...names].filter((each) => each.toLowerCase().includes(text.toLowerCase())).toSorted()
}

/** @param {Page} page @returns {import('./bulk.js').BulkAction<Key>[]} */
function bulkOf(page) {
  const set =
    (/** @type {boolean} */ disabled) =>
    (/** @type {Key} */ { hash }) =>
      send('PATCH', `${path}/${segment(hash)}`, { disabled })
  return [
    {
      title: 'Disable',
      isDanger: true,
      act: async (rows) => {
        const body = html`<p>Requests with them are refused at once, also those of access tokens that act as them.</p>${nameList(rows.map(({ name }) => name))}`
        const title = `Disable ${count(rows.length)} ${rows.length === 1 ? 'key' : 'keys'}?`
        if (await confirm({ title, body, action: 'Disable', isDanger: true }))
          await forEach(
            page,
            rows.filter(({ disabled }) => !disabled),
            set(true),
            { words: (number) => `${number} disabled`, undo: set(false) },
          )
      },
    },
    {
      title: 'Enable',
      act: (rows) =>
        forEach(
          page,
          rows.filter(({ disabled }) => disabled),
          set(false),
          { words: (number) => `${number} enabled`, undo: set(true) },
        ),
    },
  ]
}

/** @param {Page} page */
function list(page) {
  const listing = createListing(page, {
    search: 'Search keys by name',
    filters,
    file: 'keys',
    load: (asked) => {
      const { kind, state, owner } = page.query
      return partOf(path, { kind, state, owner, ...unused(page.query) }, asked)
    },
  })
  const create = page.may('keys.create')
    ? html`<a class="button" href="#/keys/invite">Invite a colleague</a><a class="button primary" href="#/keys/new">Create key</a>`
    : nothing
  return () =>
    listing.show({
      label: 'Keys',
      tools: html`<div class="actions push">${create}</div>`,
      name: ({ name }) => name,
      bulk: page.may('keys.update') ? bulkOf(page) : [],
      empty: empty(
        'No keys',
        'An inference key holds budget, rates and allowed models. Policies let workloads act as it.',
        create,
      ),
      columns: [
        {
          title: 'Key',
          isHeader: true,
          cell: ({ hash, name, label }) =>
            html`<a href=${href(['keys', hash])}>${stored(name, 120)}</a> <span class="muted small mono">${label}</span>`,
          value: ({ name }) => name,
        },
        { title: 'State', cell: keyBadge, value: ({ state }) => state },
        { title: 'Budget', cell: budgetCell, value: ({ usage }) => usage },
        { title: 'Rates', cell: rates },
        { title: 'User', cell: ({ owner }) => stored(owner, 80), value: ({ owner }) => owner },
        {
          title: 'Last used',
          cell: lastUse,
          value: ({ last_used_at }) => last_used_at,
        },
      ],
    })
}
