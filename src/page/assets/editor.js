// A form for a kind whose fields all come from its table: prices, upstreams, the organization, webhooks. What is typed is kept, saved and compared as
// everywhere (edit.js).
/** @import { Act, Content, Page } from '../types.ts' */
/** @import { FormField, Held } from './fields.js' */
import { control } from './control.js'
import { begin, createEdit, openEdit, saveEdit, trouble, unsavedMark } from './edit.js'
import { heldIn, numbersIn, sentFrom } from './fields.js'
import { form } from './form.js'
import { html } from './lit-html.js'
import { notify } from './notice.js'
import { loading, mayNot } from './parts.js'
import { go, href } from './router.js'

/** @typedef {Readonly<Record<string, FormField>>} Table */
/** @typedef {Record<string, any>} Values */

/**
 * @typedef {object} Asked
 * @property {string} what such as `price`
 * @property {Table} table
 * @property {Act} act who may save it
 * @property {string} title
 * @property {string} submit
 * @property {string} path where a new one is posted
 * @property {string} [self] where a saved one is
 * @property {string[]} back where Cancel and Save lead
 * @property {() => Promise<{ data: any, etag?: string | undefined }>} [read] instead of reading `self`
 * @property {(values: Values, etag: string | undefined) => Promise<unknown>} [save] instead of POST and PATCH
 * @property {(response: any) => Promise<unknown> | void} [saved] before it leads back
 * @property {(values: Values) => Content} [above] @property {(values: Values) => Content} [below]
 */

/** @param {Page} page @param {Asked} asked @returns {() => Content} */
export function editor(page, asked) {
  const { what, table, act, title, submit, path, self, back, read, save } = asked
  page.title(title)
  const valuesOf = (/** @type {object | undefined} */ record) => /** @type {Values} */ (heldIn(table, record))
  const edited = createEdit(page, {
    ...{ what, path, blank: valuesOf(undefined), valuesOf },
    ...(self === undefined ? {} : { self }),
    bodyOf: (values) => sentFrom(table, /** @type {any} */ (values)),
    numbers: numbersIn(table, self === undefined),
    ...(save === undefined ? {} : { save }),
    ...(read === undefined ? {} : { read }),
  })
  const open = async () => {
    if (read === undefined && self === undefined) begin(edited, valuesOf(undefined))
    else await openEdit(edited)
  }
  page.poll(async () => {
    if (!edited.isReady) await open()
  }, 86_400)
  const onSubmit = () =>
    void saveEdit(edited, async (response) => {
      await asked.saved?.(response)
      notify('ok', response === undefined ? 'Nothing was changed' : 'Saved')
      go(back)
    })
  const needed = Object.entries(table).flatMap(([name, { isNeeded }]) => (isNeeded ? [name] : []))
  return () => {
    if (!page.may(act)) return mayNot(page, act)
    if (!edited.isReady) return loading()
    const { values } = edited.draft
    const shown = { onSubmit, submit, busy: edited.busy, cancel: href(back), extra: unsavedMark(edited) }
    const disabled = needed.some((name) => values[name].trim() === '')
    return html`<section class="card narrow">${trouble(edited, onSubmit, open)}${form(
      { ...shown, disabled },
      html`${asked.above?.(values)}<div class="fields">${Object.entries(table).map((each) => control(edited, each))}</div>${asked.below?.(values)}`,
    )}</section>`
  }
}
