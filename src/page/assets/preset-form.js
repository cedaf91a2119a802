// The form that makes a preset, or a new version of one.
/** @import { Page } from '../types.ts' */
import { get, segment, send } from './client.js'
import { createDraft, form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { json, problem, readOnly } from './parts.js'
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

/** @param {Page} page @param {string} [slug] none for a new preset */
export function presetForm(page, slug) {
  page.title(slug === undefined ? 'New preset' : `New version of ${slug}`)
  const draft = createDraft(page, { slug: slug ?? '', body: slug === undefined ? json(example) : '' })
  /** @type {unknown} */
  let failure
  let busy = false
  page.poll(async () => {
    if (slug === undefined || draft.values.body !== '') return
    const { config, system_prompt: prompt } = (await get(`${path}/${segment(slug)}`)).data.designated_version
    const message = prompt === null ? { role: 'user', content: '' } : { role: 'system', content: prompt }
    draft.values.body = json({ ...config, messages: [message] })
  }, 86_400)
  const save = async () => {
    ;[busy, failure] = [true, undefined]
    page.update()
    const name = draft.values.slug.trim()
    try {
      await send('POST', `${path}/${segment(name)}/chat/completions`, parseBody(draft.values.body))
      notify('ok', slug === undefined ? 'The preset was created' : 'The version was created and is designated')
      go(['presets', name])
    } catch (error) {
      failure = error
    }
    busy = false
    page.update()
  }
  return () => {
    if (!page.canWrite) return readOnly()
    const asked = {
      onSubmit: () => void save(),
      submit: slug === undefined ? 'Create preset' : 'Create version',
      busy,
      disabled: draft.values.slug.trim() === '',
      cancel: href(slug === undefined ? ['presets'] : ['presets', slug]),
    }
    return html`<section class="card">${form(
      asked,
      html`${failure === undefined ? nothing : problem(failure)}
        ${slug === undefined ? draft.field('slug', 'Slug', { mono: true, help: 'Letters, digits and . _ ~ -; it cannot be changed later' }) : nothing}
        ${draft.field('body', 'Body of a chat completions request', {
          rows: 16,
          mono: true,
          help: html`Model, settings, tools and the text of system messages are kept, the rest belongs to one request: <a href="#/manual/presets">what a preset stores</a>.${slug === undefined ? nothing : ' Callers who name no version get the new one at once.'}`,
        })}`,
    )}</section>`
  }
}
