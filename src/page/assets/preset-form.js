// The form that makes a preset, or a new version of one.
/** @import { Page } from '../types.ts' */
import { asProblem, get, segment, send } from './client.js'
import { begin, createEdit, openEdit, saveEdit, trouble, unsavedMark } from './edit.js'
import { form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { json, loading, mayNot } from './parts.js'
import { go, href } from './router.js'

const path = '/presets'
const example = {
  model: 'llama-3.1-8b',
  temperature: 0.2,
  messages: [{ role: 'system', content: 'You answer briefly.' }],
}

/** @param {string} text */
export function parseBody(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`This is not JSON: ${/** @type {Error} */ (error).message}`)
  }
}

const begun = { slug: '', body: json(example) }

/** @param {{ slug: string, designated_version: { config: object, system_prompt: string | null } }} preset */
function valuesOf({ slug, designated_version: { config, system_prompt: prompt } }) {
  const message = prompt === null ? { role: 'user', content: '' } : { role: 'system', content: prompt }
  return { slug, body: json({ ...config, messages: [message] }) }
}

/** Two versions are compared by the members of the body. @param {typeof begun} values @returns {Record<string, unknown>} */
function split({ body }) {
  try {
    return parseBody(body)
  } catch {
    return { body }
  }
}

/** @param {typeof begun} values @param {string | undefined} etag */
async function save({ slug, body }, etag) {
  const self = `${path}/${segment(slug.trim())}`
  const content = parseBody(body)
  // A version of a preset that exists would be designated at once.
  if (etag === undefined && (await exists(self)))
    throw new Error(`A preset "${slug.trim()}" exists: open it to add a version, or choose another slug`)
  return send('POST', `${self}/chat/completions`, content, { etag })
}

/** @param {string} self @returns {Promise<boolean>} */
const exists = (self) =>
  get(self).then(
    () => true,
    (error) => {
      if (asProblem(error).status !== 404) throw error
      return false
    },
  )

/** @param {Page} page @param {string} [slug] none for a new preset */
export function presetForm(page, slug) {
  page.title(slug === undefined ? 'New preset' : `New version of ${slug}`)
  const edited = createEdit(page, {
    what: 'preset',
    path,
    ...(slug === undefined ? {} : { self: `${path}/${segment(slug)}` }),
    blank: begun,
    valuesOf,
    bodyOf: (values) => values,
    split,
    join: (parts, values) => ({ ...values, body: json(parts) }),
    save,
  })
  const open = async () => (slug === undefined ? begin(edited, begun) : openEdit(edited))
  page.poll(async () => {
    if (!edited.isReady) await open()
  }, 86_400)
  const onSubmit = () =>
    void saveEdit(edited, () => {
      notify('ok', slug === undefined ? 'The preset was created' : 'The version was created and is designated')
      go(['presets', edited.draft.values.slug.trim()])
    })
  return () => {
    if (!page.may('presets.save')) return mayNot(page)
    if (!edited.isReady) return loading()
    const { draft, busy, conflict } = edited
    const asked = {
      onSubmit,
      submit: slug === undefined ? 'Create preset' : 'Create version',
      busy,
      disabled: draft.values.slug.trim() === '' || conflict !== undefined,
      cancel: href(slug === undefined ? ['presets'] : ['presets', slug]),
      extra: unsavedMark(edited),
    }
    return html`<section class="card">${trouble(edited, onSubmit, open)}${form(
      asked,
      html`${slug === undefined ? draft.field('slug', 'Slug', { mono: true, help: 'Letters, digits and . _ ~ -; it cannot be changed later' }) : nothing}
        ${draft.field('body', 'Body of a chat completions request', {
          rows: 16,
          mono: true,
          help: html`Model, settings, tools and the text of system messages are kept, the rest belongs to one request: <a href="#/manual/presets">what a preset stores</a>.${slug === undefined ? nothing : ' Callers who name no version get the new one at once.'}`,
        })}`,
    )}</section>`
  }
}
