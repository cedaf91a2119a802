// Signed bundles of issuer keys, for sites that issuers cannot be reached from: who may sign them, and importing one.
/** @import { BundleSigner, ImportedBundle } from '../../admin/transport/response-types.ts' */
/** @import { Column, Page, View } from '../types.ts' */
import { get, segment, send } from './client.js'
import { confirm, openDialog } from './dialog.js'
import { field, form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { ago, at, badge, button, count, empty, heading, loading, mono, problem, stored } from './parts.js'
import { asCommand } from './remedies.js'
import { table } from './table.js'

const signersPath = '/workload-identity/bundle-signers'

/** @type {View} */
export const view = (page) => {
  /** @type {BundleSigner[] | undefined} */
  let signers
  /** What a file would do, or did. @type {{ file: string, rows: ImportedBundle[], isDone: boolean } | undefined} */
  let read
  page.poll(async () => {
    signers = (await get(signersPath)).data
  })
  const importFile = async (/** @type {string} */ file, /** @type {boolean} */ isDone) => {
    const asked = { file, ...(isDone ? {} : { dry_run: true }) }
    read = { file, rows: (await send('POST', '/workload-identity/key-bundles', asked)).data, isDone }
    if (isDone) notify('ok', 'The bundles were imported')
  }
  const choose = async (/** @type {Event} */ event) => {
    const file = /** @type {HTMLInputElement} */ (event.target).files?.[0]
    if (file !== undefined) await page.run(async () => importFile(await file.text(), false))
  }
  const remove = async (/** @type {BundleSigner} */ { id, name, issuers }) => {
    const body = html`<p>No bundle of ${stored(name, 80)} is accepted any more. ${issuers.length === 0 ? nothing : html`Keys of ${stored(issuers.join(', '), 300)} stay until they expire.`}</p>`
    if (!(await confirm({ title: 'Remove this signer?', body, action: 'Remove signer', isDanger: true }))) return
    await send('DELETE', `${signersPath}/${segment(id)}`)
    await page.refresh()
  }
  return () => {
    if (signers === undefined) return loading()
    const action = (/** @type {BundleSigner} */ row) =>
      button(page, 'Remove', () => remove(row), 'danger', `Remove ${row.name.slice(0, 100)}`)
    const add = page.may('bundle_signers.add') ? button(page, 'Add signer', () => addSigner(page)) : nothing
    return html`${page.may('issuers.import') ? importer(page, read, choose, importFile) : nothing}
      <section class="stack">${heading('Who may sign bundles', add)}
        ${table({
          label: 'Who may sign bundles',
          rows: signers,
          columns: [
            ...signerColumns,
            ...(page.may('bundle_signers.remove')
              ? [{ title: '', align: /** @type {const} */ ('end'), cell: action }]
              : []),
          ],
          empty: empty(
            'No signers',
            html`A machine outside packs the keys of issuers into signed bundles. <a href="#/manual/airgap">How bundles work</a>`,
            add,
          ),
        })}
      </section>`
  }
}

/** @type {Column<BundleSigner>[]} */
const signerColumns = [
  { title: 'Signer', isHeader: true, cell: ({ name }) => stored(name, 120) },
  { title: 'Key', cell: ({ algorithm, key_id: id }) => html`${algorithm} ${mono(id, 80)}` },
  { title: 'Issuers', cell: ({ issuers }) => stored(issuers.join(', '), 300) },
  { title: 'Added', cell: ({ created_at }) => ago(created_at) },
]

/** @type {Column<ImportedBundle>[]} */
const bundleColumns = [
  { title: 'Issuer', isHeader: true, cell: ({ issuer, issuer_url: url }) => stored(issuer ?? url, 160) },
  {
    title: 'Outcome',
    cell: ({ outcome, reason, message }) =>
      html`${badge(outcome === 'refused' ? 'bad' : 'ok', outcome)} ${reason === undefined ? nothing : html`<span class="mono">${reason}</span> ${stored(message, 400)}`}`,
  },
  {
    title: 'Keys',
    cell: ({ keys_added: added, keys_kept: kept, keys_gone: gone }) =>
      `${count(added.length)} new, ${count(kept.length)} kept, ${count(gone.length)} gone`,
  },
  { title: 'Expires', cell: ({ expires_at }) => at(expires_at) },
]

/**
 * @param {Page} page @param {{ file: string, rows: ImportedBundle[], isDone: boolean } | undefined} read
 * @param {(event: Event) => Promise<void>} choose @param {(file: string, isDone: boolean) => Promise<void>} importFile
 */
function importer(page, read, choose, importFile) {
  const accepts = read?.rows.some(({ outcome }) => outcome === 'imported') === true && !read.isDone
  return html`<section class="card">${heading('Import a bundle', accepts ? button(page, 'Import', () => importFile(read?.file ?? '', true), 'primary') : nothing)}
    <div class="field"><label for="f-bundle">Bundle file</label><input id="f-bundle" type="file" @change=${choose} /><p class="help">It is checked first: nothing changes before you press Import.</p></div>
    ${asCommand('latchkey jwks pack --help', 'Pack one outside, as a command')}
    ${read === undefined ? nothing : table({ label: 'Bundles of the file', columns: bundleColumns, rows: read.rows, key: ({ issuer_url: url, sequence }) => `${url} ${sequence}` })}
  </section>`
}

/** @param {Page} page */
async function addSigner(page) {
  const typed = { name: '', key: '' }
  /** @type {unknown} */
  let failure
  const set = (/** @type {'name' | 'key'} */ name) => (/** @type {string} */ text) => {
    typed[name] = text
    dialog.update()
  }
  const dialog = openDialog('Add signer', (close) => {
    const onSubmit = async () => {
      try {
        await send('POST', signersPath, { name: typed.name, key: JSON.parse(typed.key) })
        close()
      } catch (error) {
        failure = error
        dialog.update()
      }
    }
    const isEmpty = typed.name.trim() === '' || typed.key.trim() === ''
    return html`<div class="body">${failure === undefined ? nothing : problem(failure)}
      ${form(
        { onSubmit: () => void onSubmit(), submit: 'Add signer', disabled: isEmpty },
        html`${field({ label: 'Name', name: 'signer', value: typed.name, onInput: set('name'), charactersMax: 128 })}
          ${field({ label: 'Public key (JWK)', name: 'signer-key', value: typed.key, onInput: set('key'), rows: 4, mono: true, help: 'Of Ed25519 or P-256, without the private member d' })}`,
      )}</div>`
  })
  await dialog.closed
  await page.refresh()
}
