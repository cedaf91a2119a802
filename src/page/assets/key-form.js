// The form that creates or changes a key. The secret of a new key is shown once.
/** @import { Key } from '../../admin/transport/response-types.ts' */
/** @import { Page } from '../types.ts' */
/** @import { KeyValues } from './key-fields.js' */
import { get, segment } from './client.js'
import { control } from './control.js'
import { openDialog } from './dialog.js'
import { begin, createEdit, openEdit, saveEdit, trouble, unsavedMark } from './edit.js'
import { heldIn, numbersIn, problemsIn, sentFrom } from './fields.js'
import { form } from './form.js'
import { keyFieldList, keyFields } from './key-fields.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { code, loading, mayNot, stored } from './parts.js'
import { go, href } from './router.js'

const path = '/keys'

/** What was typed as the API takes it; an empty field removes a limit. @param {KeyValues} values */
function bodyOf(values) {
  const { kind, name, expires_at, ...limits } = sentFrom(keyFields, values)
  if (kind !== 'inference') return { name, expires_at }
  return { name, expires_at, ...limits, limit_reset: limits.limit === null ? null : limits.limit_reset }
}

/** @param {Partial<Key> | undefined} [key] */
const valuesOf = (key) => heldIn(keyFields, key)

/** @param {Page} page @param {string} [hash] none for a new key */
function createKeyEdit(page, hash) {
  const self = hash === undefined ? {} : { self: `${path}/${segment(hash)}` }
  const numbers = numbersIn(keyFields)
  return createEdit(page, {
    ...{ what: 'key', path, ...self, blank: valuesOf(), valuesOf, bodyOf, numbers },
    problemsIn: (values) => problemsIn(keyFields, values),
  })
}
/** @typedef {ReturnType<typeof createKeyEdit>} Edited */

/** @param {Edited} edited */
async function open(edited) {
  const { from } = edited.page.query
  if (!edited.isNew) return openEdit(edited)
  if (from === undefined) return begin(edited, valuesOf())
  const { data } = await get(`${path}/${segment(from)}`)
  begin(edited, { ...valuesOf(data), name: `${[...data.name].slice(0, nameCharactersMax - 5).join('')} copy` })
}
const nameCharactersMax = 128

/** @param {Edited} edited @param {string} [hash] */
const save = (edited, hash) =>
  saveEdit(edited, async (response) => {
    if (hash !== undefined) {
      notify('ok', response === undefined ? 'Nothing was changed' : 'The key was changed')
      return go(['keys', hash])
    }
    const place = location.hash
    await showSecret(response.key, response.data.name)
    if (location.hash === place) go(['keys', response.data.hash])
  })

/** @param {Page} page @param {string} [hash] none for a new key */
export function keyForm(page, hash) {
  page.title(hash === undefined ? 'New key' : 'Edit key')
  const edited = createKeyEdit(page, hash)
  page.poll(async () => {
    if (!edited.isReady) await open(edited)
  }, 86_400)
  return () => {
    const { draft, busy, isReady } = edited
    if (!page.may('keys.create')) return mayNot(page, 'keys.create')
    if (!isReady) return loading()
    const asked = {
      onSubmit: () => void save(edited, hash),
      submit: hash === undefined ? 'Create key' : 'Save',
      busy,
      disabled: draft.values.name.trim() === '',
      cancel: href(hash === undefined ? ['keys'] : ['keys', hash]),
      extra: unsavedMark(edited),
    }
    return html`<section class="card narrow">${trouble(
      edited,
      () => void save(edited, hash),
      () => open(edited),
    )}${form(
      asked,
      html`${draft.field('name', 'Name', { charactersMax: nameCharactersMax })} ${draft.values.kind === 'inference' ? limits(edited) : nothing}
      ${draft.field('expires_at', 'Expires', { required: false, type: 'datetime-local' })}`,
    )}</section>`
  }
}

/** @param {Edited} edited */
function limits(edited) {
  const fields = keyFieldList.filter(([, { place }]) => place === 'limits')
  return html`<div class="fields">${fields.map((each) => control(edited, each))}</div>`
}

/** @param {string} text of a new key @param {string} [name] @param {string} [title] */
export async function showSecret(text, name, title = 'The new key') {
  await openDialog(
    title,
    (
      close,
    ) => html`<div class="body">${name === undefined ? nothing : html`<p>Name: <strong>${stored(name, 120)}</strong></p>`}<p>This is the only time that it is shown. Copy it to where it is used. Workloads that a policy lets in do not need it.</p>
        ${code(text, 'key')}</div>
      <div class="buttons"><button type="button" class="primary" @click=${() => close()}>I have copied it</button></div>`,
    { stays: true },
  ).closed
}
