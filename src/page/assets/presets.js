// Presets: the list. preset.js shows one, preset-form.js makes versions.
/** @import { Page, View } from '../types.ts' */

import { forEach } from './bulk.js'
import { segment, send } from './client.js'
import { createListing, partOf } from './listing.js'
import { html, nothing } from './lit-html.js'
import { ago, empty, mono, stored } from './parts.js'
import { preset, statusBadge } from './preset.js'
import { presetForm } from './preset-form.js'
import { href } from './router.js'

const path = '/presets'

/** @type {View} */
export const view = (page) => {
  const [slug, tab] = page.path
  if (slug === undefined) return list(page)
  if (slug === 'new' || tab === 'edit') return presetForm(page, slug === 'new' && tab === undefined ? undefined : slug)
  return preset(page, slug)
}

/** @param {Page} page @returns {import('./bulk.js').BulkAction<{ slug: string }>[]} */
function bulkOf(page) {
  const one = (/** @type {{ slug: string }} */ { slug }) => `${path}/${segment(slug)}`
  return [
    {
      title: 'Archive',
      isDanger: true,
      act: (rows) =>
        forEach(page, rows, (row) => send('DELETE', one(row)), {
          words: (number) => `${number} archived: requests that name them fail with 404`,
          undo: (row) => send('POST', `${one(row)}/restore`, {}),
        }),
    },
  ]
}

/** @param {Page} page */
function list(page) {
  const listing = createListing(page, {
    search: 'Search presets by slug or name',
    file: 'presets',
    load: (asked) => partOf(path, {}, asked),
  })
  const create = page.may('presets.save')
    ? html`<a class="button primary" href="#/presets/new">Create preset</a>`
    : nothing
  return () =>
    listing.show({
      label: 'Presets',
      key: ({ slug }) => slug,
      tools: html`<div class="actions push">${create}</div>`,
      name: ({ slug }) => slug,
      bulk: page.may('presets.archive') ? bulkOf(page) : [],
      empty: empty(
        'No presets',
        html`A preset is a name for model, settings and system prompt: callers send <code>"model": "@preset/slug"</code>.`,
        create,
      ),
      columns: [
        {
          title: 'Preset',
          isHeader: true,
          cell: ({ slug }) => html`<a href=${href(['presets', slug])}>${mono(slug, 128)}</a>`,
        },
        {
          title: 'Name',
          cell: ({ name, description }) =>
            html`${stored(name, 120)}${description === null ? nothing : html`<div class="muted small">${stored(description, 160)}</div>`}`,
        },
        { title: 'Status', cell: statusBadge },
        { title: 'Changed', cell: ({ updated_at }) => ago(updated_at) },
      ],
    })
}
