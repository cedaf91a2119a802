// The forms of what belongs to the installation: a price, and how much an upstream gets. Where prompts go is decided on the server: those fields are
// shown with their command.
/** @import { Price, Upstream } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
import { asProblem, get, segment, send } from './client.js'
import { confirm } from './dialog.js'
import { editor } from './editor.js'
import { sentFrom } from './fields.js'
import { priceFields, upstreamFields } from './installation-fields.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { ago, at, button, callout, facts, money, mono } from './parts.js'
import { asCommand } from './remedies.js'
import { go } from './router.js'
import { timeText } from './zone.js'

const prices = '/installation/prices'
const pricesRead = 1_000

/** @param {Page} page @param {string} [model] none for a new price */
export function priceForm(page, model) {
  /** @type {Price | undefined} */
  let known
  /** For a new price: those that it could replace. @type {Price[]} */
  let others = []
  if (model === undefined)
    page.poll(async () => {
      others = (await get(prices, { limit: pricesRead })).data
    })
  const remove = async () => {
    const body = html`<p>The cost of ${mono(model, 200)} is then unknown where a server does not report it. Requests that were counted keep their cost.</p>`
    if (!(await confirm({ title: 'Remove this price?', body, action: 'Remove price', isDanger: true }))) return
    await send('POST', `${prices}/remove`, { model })
    notify('ok', 'The price was removed')
    go(['upstreams'])
  }
  const read = async () => {
    const { data } = await get(prices, { contains: model, limit: 100 })
    known = /** @type {Price[]} */ (data).find((price) => price.model === model)
    return { data: known ?? { model }, etag: known && `"${known.updated_at}"` }
  }
  return editor(page, {
    ...{ what: 'price', table: priceFields, act: 'prices.set', path: prices, back: ['upstreams'] },
    title: model === undefined ? 'Set a price' : `Price of ${model}`,
    submit: 'Set price',
    ...(model === undefined ? {} : { read }),
    // The version is that of the price that was opened.
    save: (values, etag) => {
      const given = Object.entries(sentFrom(priceFields, /** @type {any} */ (values)))
      const price = Object.fromEntries(given.filter(([, value]) => value !== null))
      const version = { etag: values.model === model ? etag : undefined }
      return send('POST', prices, { prices: [price] }, version).catch((error) => {
        throw ofOnlyPrice(error)
      })
    },
    above: (values) => inForce(known ?? others.find((price) => price.model === values.model.trim()), values.from),
    below: () =>
      html`${laterOf(known)}${model === undefined ? nothing : html`<div>${button(page, 'Remove price', remove, 'danger')}</div>`}`,
  })
}

/** The server names a field of a list of prices: here it is that of the form. @param {unknown} error */
function ofOnlyPrice(error) {
  const found = asProblem(error)
  const [, name = ''] = /^prices\[0\]\.(\w+)/i.exec(found.message) ?? []
  if (!(name in priceFields)) return found
  const labels = /** @type {Record<string, { label: string }>} */ (priceFields)
  const message = found.message.replaceAll(/prices\[0\]\.(\w+)/gi, (whole, field) => labels[field]?.label ?? whole)
  return Object.assign(found, { field: name, fields: { [name]: message }, message })
}

/** What is in force for the model, and from when the price of the form counts instead. @param {Price | undefined} price @param {string} from as its field has it @returns {Content} */
function inForce(price, from) {
  if (price === undefined) return nothing
  const { model, updated_at: changed, later } = price
  const { prompt, completion } = later?.findLast((each) => Date.parse(each.from) <= Date.now()) ?? price
  const time = new Date(from)
  const isLater = time.getTime() > Date.now()
  return callout(
    'info',
    html`<p>In force for ${mono(model, 200)}: ${money(prompt)} for a million prompt tokens and ${money(completion)} for a million completion
        tokens, changed ${ago(changed)}.</p>
      <p>The new price counts instead ${isLater ? html`from ${at(time.toISOString())}` : 'as soon as you set it'}. Requests that were counted keep their cost.</p>`,
  )
}

/** @param {Price | undefined} price @returns {Content} */
function laterOf(price) {
  const rows = (price?.later ?? []).map(
    ({ from, prompt, completion }) =>
      /** @type {[string, Content]} */ ([timeText(new Date(from)), `${money(prompt)}, ${money(completion)}`]),
  )
  return rows.length === 0 ? nothing : callout('info', html`<p>It changes later:</p>${facts(rows)}`)
}

/** @param {Page} page @param {string} id */
export function upstreamForm(page, id) {
  const self = `/installation/upstreams/${segment(id)}`
  /** @type {Upstream | undefined} */
  let upstream
  page.poll(async () => {
    upstream = (await get(self)).data
    page.title(`Edit ${upstream?.name ?? ''}`)
  }, 86_400)
  return editor(page, {
    ...{ what: 'upstream', table: upstreamFields, act: 'upstreams.tune', path: self, self, back: ['upstreams'] },
    title: 'Edit server',
    submit: 'Save',
    above: () =>
      upstream === undefined
        ? nothing
        : html`${facts([
            ['URL', mono(upstream.base_url, 400)],
            ['Credential', upstream.has_credential ? 'set' : 'none'],
          ])}<p class="muted">Where prompts and credentials go is decided on the server.</p>
          ${asCommand(`latchkey upstreams update ${quoted(upstream.name)} --inference-url URL`)}`,
  })
}

/** A name for a shell. @param {string} name */
const quoted = (name) => (/^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`)
