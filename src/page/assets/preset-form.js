// The form that makes a preset, or a new version of one.
/** @import { Page } from '../types.ts' */
import { asProblem, get, segment, send } from './client.js'
import { createCodeField } from './code-field.js'
import { begin, createEdit, openEdit, saveEdit, trouble, unsavedMark } from './edit.js'
import { form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { json, loading, mayNot } from './parts.js'
import { go, href } from './router.js'

const path = '/presets'

/** @param {string} text */
export function parseBody(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`This is not JSON: ${/** @type {Error} */ (error).message}`)
  }
}

const begun = { slug: '', prompt: '', body: '{}' }
const example = '{ "model": "llama-3.1-8b", "temperature": 0.2 }'

/** @param {{ slug: string, designated_version: { config: object, system_prompt: string | null } }} preset */
function valuesOf({ slug, designated_version: { config, system_prompt: prompt } }) {
  return { slug, prompt: prompt ?? '', body: json(config) }
}

/** Two versions are compared by the members of the body. @param {typeof begun} values @returns {Record<string, unknown>} */
function split({ body, prompt }) {
  try {
    return { ...parseBody(body), system_prompt: prompt }
  } catch {
    return { body, system_prompt: prompt }
  }
}

/** @param {Record<string, unknown>} parts @param {typeof begun} values */
function join({ system_prompt: prompt, ...parts }, values) {
  return { ...values, prompt: String(prompt ?? ''), body: json(parts) }
}

/** @typedef {{ role: string, content: unknown }} Message */

/** The messages of the body, after the system prompt unless they have it already. @param {string} prompt @param {Message[]} own @returns {Message[]} */
export function messagesOf(prompt, own) {
  const texts = own.filter(({ role }) => role === 'system' || role === 'developer').map(({ content }) => content)
  const hasPrompt = prompt.trim() === '' || texts.join('\n\n') === prompt
  const messages = hasPrompt ? own : [{ role: 'system', content: prompt }, ...own]
  return messages.length === 0 ? [{ role: 'user', content: '' }] : messages
}

/** @param {typeof begun} values @param {string | undefined} etag */
async function save({ slug, prompt, body }, etag) {
  const self = `${path}/${segment(slug.trim())}`
  const parsed = parseBody(body)
  const content = { ...parsed, messages: messagesOf(prompt, parsed.messages ?? []) }
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
    join,
    save,
  })
  const open = async () => (slug === undefined ? begin(edited, begun) : openEdit(edited))
  page.poll(async () => {
    if (!edited.isReady) await open()
  }, 86_400)
  const [promptField, bodyField] = [createCodeField(page), createCodeField(page)]
  const onSubmit = () =>
    void saveEdit(edited, () => {
      notify('ok', slug === undefined ? 'The preset was created' : 'The version was created and is designated')
      go(['presets', edited.draft.values.slug.trim()])
    })
  return () => {
    if (!page.may('presets.save')) return mayNot(page, 'presets.save')
    if (!edited.isReady) return loading()
    const { draft, busy } = edited
    const asked = {
      onSubmit,
      submit: slug === undefined ? 'Create preset' : 'Create version',
      busy,
      disabled: draft.values.slug.trim() === '',
      cancel: href(slug === undefined ? ['presets'] : ['presets', slug]),
      extra: unsavedMark(edited),
    }
    return html`<section class="card narrow">${trouble(edited, onSubmit, open)}${form(
      asked,
      html`${slug === undefined ? draft.field('slug', 'Slug', { mono: true, help: 'Letters, digits and . _ ~ -; it cannot be changed later' }) : nothing}
        ${promptField({ name: 'prompt', label: 'System prompt', value: draft.values.prompt, onInput: draft.set('prompt'), rows: 8, required: false })}
        ${bodyField({
          name: 'body',
          label: 'Body of a chat completions request',
          value: draft.values.body,
          onInput: draft.set('body'),
          rows: 12,
          error: draft.errors.body,
          help: html`Model, settings and tools are kept, the rest belongs to one request; the text of system messages follows the system prompt: <a href="#/manual/presets">what a preset stores</a>.${slug === undefined ? html` For example: <code>${example}</code>` : ' Callers who name no version get the new one at once.'}`,
        })}`,
    )}</section>`
  }
}
