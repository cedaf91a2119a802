// Inference servers and prices: what runs and waits now, the servers in the order in which they are tried, each with a check, and what models
// cost.
/** @import { Price, Queue, Upstream } from '../../admin/transport/response-types.ts' */
/** @import { Column, Content, Page, View } from '../types.ts' */
import { asProblem, get, segment, send } from './client.js'
import { priceForm, upstreamForm } from './installation-forms.js'
import { createListing, partOf } from './listing.js'
import { html, nothing } from './lit-html.js'
import {
  ago,
  at,
  badge,
  button,
  callout,
  count,
  empty,
  heading,
  loading,
  money,
  moneyAlike,
  mono,
  stored,
} from './parts.js'
import { queueSeconds, queueSection } from './queue.js'
import { asCommand } from './remedies.js'
import { href } from './router.js'
import { table } from './table.js'

const path = '/installation'

/** What a key of another organization reads. @param {unknown} error */
export function notInstallation(error) {
  if (asProblem(error).status !== 403) throw error
  return callout(
    'info',
    'This belongs to the whole installation. Sign in with a management key of the organization that it was set up with.',
  )
}

/** A key of another organization learns so from the list of servers. @param {unknown} error */
function withoutServer(error) {
  if (asProblem(error).status !== 403) throw error
  return undefined
}

/** @type {View} */
export const view = (page) => {
  const [kind, name] = page.path
  if (kind === 'prices') return priceForm(page, name === 'new' ? undefined : name)
  return kind === undefined ? list(page) : upstreamForm(page, kind)
}

/** @type {View} */
function list(page) {
  /** @type {Upstream[] | undefined} */
  let upstreams
  /** @type {Queue | undefined} */
  let queue
  /** @type {Content} */
  let refused
  /** @type {Map<string, { ok: boolean, models: number | null, problem: string | null, milliseconds: number } | 'checking'>} */
  const checked = new Map()
  page.poll(async () => {
    try {
      ;({ data: upstreams } = await get(`${path}/upstreams`))
    } catch (error) {
      refused = notInstallation(error)
    }
  })
  page.poll(async () => {
    if (refused === undefined) queue = await get(`${path}/queue`).then(({ data }) => data, withoutServer)
  }, queueSeconds)
  const listing = createListing(page, {
    search: 'Search prices by model',
    load: (asked) =>
      partOf(`${path}/prices`, {}, asked).catch((error) => {
        refused = notInstallation(error)
        return { rows: [] }
      }),
  })
  const check = async (/** @type {Upstream} */ { id }) => {
    checked.set(id, 'checking')
    page.update()
    try {
      checked.set(id, (await send('POST', `${path}/upstreams/${segment(id)}/check`, {})).data[0])
    } catch (error) {
      checked.delete(id)
      throw error
    }
  }
  const result = (/** @type {Upstream} */ { id }) => {
    const found = checked.get(id)
    if (found === undefined) return html`<span class="muted">not checked</span>`
    if (found === 'checking') return html`<span role="status">checking…</span>`
    return html`<span role="status">${found.ok ? badge('ok', 'responds') : badge('bad', 'fails')} ${found.ok ? `${count(found.models ?? 0)} ${found.models === 1 ? 'model' : 'models'}` : stored(found.problem, 600)}
      <span class="muted">${count(found.milliseconds)} ms</span></span>`
  }
  const action = (/** @type {Upstream} */ upstream) =>
    html`${button(page, 'Check', () => check(upstream), '', `Check ${upstream.name.slice(0, 100)}`)} ${page.may('upstreams.tune') && upstream.created_at !== null ? html`<a class="button" href=${href(['upstreams', upstream.id])} aria-label=${`Edit ${upstream.name.slice(0, 100)}`}>Edit</a>` : nothing}`
  return () => {
    if (refused !== undefined) return refused
    if (upstreams === undefined) return loading()
    return html`${queueSection(queue)}
      <section class="stack">${heading('Inference servers')}
        <p class="muted">A request goes to the servers of the lowest priority number that have its model. ${upstreams.some(({ created_at: made }) => made === null) ? html`The server “configured” comes from <code>LATCHKEY_UPSTREAM_URL</code> and is changed there.` : nothing}</p>
        ${asCommand('latchkey upstreams add --name gpu --inference-url URL', 'Add a server')}
        ${servers(upstreams, [{ title: 'Check', cell: result }, ...(page.may('upstreams.check') ? [{ title: '', align: /** @type {const} */ ('end'), cell: action }] : [])])}
      </section>
      <section class="stack">${heading('Prices', page.may('prices.set') ? html`<a class="button" href=${href(['upstreams', 'prices', 'new'])}>Set a price</a>` : nothing)}
        <p class="muted">US dollars for a million tokens, where a server does not report the cost. The most specific pattern applies.</p>
        ${listing.show(pricesOf(page, listing.rows() ?? []))}
      </section>`
  }
}

/** @param {Upstream[]} rows @param {Column<Upstream>[]} more */
function servers(rows, more) {
  return table({
    label: 'Inference servers',
    columns: [
      {
        title: 'Server',
        isHeader: true,
        cell: ({ name, base_url }) => html`${stored(name, 120)}<div class="muted small">${mono(base_url, 160)}</div>`,
      },
      { title: 'Models', cell: ({ models }) => mono(models.join(', '), 200) },
      { title: 'Priority', align: 'end', cell: ({ priority }) => count(priority) },
      { title: 'Credential', cell: ({ has_credential: has }) => (has ? badge('ok', 'set') : badge('off', 'none')) },
      ...more,
    ],
    rows,
    empty: empty(
      'No inference server',
      'Requests have nowhere to go. One is added on the server, by the command above.',
    ),
  })
}

/** What is not counted in tokens: characters of speech, images, seconds of audio. */
function perUnit(/** @type {Price} */ { character, image, audio_second }) {
  const parts = /** @type {[number | null, string][]} */ ([
    [character, 'million characters'],
    [image, 'image'],
    [audio_second, 'second of audio'],
  ])
  return parts.flatMap(([price, unit]) => (price === null ? [] : [html`<div>${money(price)} per ${unit}</div>`]))
}

/** The formats of the columns of prices, of which no digit is lost. @param {readonly Price[]} rows */
function alike(rows) {
  const formatOf = (/** @type {number[]} */ amounts) => moneyAlike(amounts, amounts)
  return /** @type {const} */ ([
    formatOf(rows.map(({ prompt }) => prompt)),
    formatOf(rows.map(({ completion }) => completion)),
    formatOf(rows.map(({ cached }) => cached ?? 0)),
  ])
}

function laterPrices(/** @type {Price} */ { later }) {
  return (later ?? []).map(
    ({ from, prompt, completion }) => html`<div>${at(from)}: ${money(prompt)}, ${money(completion)}</div>`,
  )
}

/** @param {Page} page @param {readonly Price[]} rows whose amounts stand below each other */
const pricesOf = (page, rows, [prompts, completions, cacheds] = alike(rows)) => ({
  label: 'Prices',
  key: (/** @type {Price} */ { model }) => model,
  columns: /** @type {Column<Price>[]} */ ([
    {
      title: 'Model',
      isHeader: true,
      cell: ({ model }) =>
        page.may('prices.set')
          ? html`<a href=${href(['upstreams', 'prices', model])}>${mono(model, 200)}</a>`
          : mono(model, 200),
    },
    { title: 'Prompt', align: 'end', cell: ({ prompt }) => prompts(prompt) },
    { title: 'Completion', align: 'end', cell: ({ completion }) => completions(completion) },
    {
      title: 'Cached prompt',
      align: 'end',
      cell: ({ cached }) => (cached === null ? html`<span class="muted">as prompt</span>` : cacheds(cached)),
    },
    { title: 'Per unit', cell: perUnit },
    { title: 'Later', cell: laterPrices },
    { title: 'Changed', cell: ({ updated_at }) => ago(updated_at) },
  ]),
  empty: empty(
    'No prices',
    'Budgets count only the costs that servers report.',
    asCommand('latchkey prices set llama-3.1-8b --prompt 0.05 --completion 0.08'),
  ),
})
