// What runs and waits at the inference servers at this moment, and whose requests these are: `latchkey upstreams top` in the page.
/** @import { Queue } from '../../admin/transport/response-types.ts' */
/** @import { Column } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { ago, at, badge, count, empty, heading, stored } from './parts.js'
import { table } from './table.js'

/** How often it is read, in seconds. */
export const queueSeconds = 2

/** @param {Queue | undefined} queue */
export function queueSection(queue) {
  if (queue === undefined) return nothing
  return html`<section class="stack">${heading('At this moment')}
      <p class="muted">What runs and waits at the node that responded, ${at(queue.at)}. Tokens per second are those of the last few seconds.</p>
      ${table({ label: 'Load of inference servers', key: ({ name }) => name, columns: serverColumns, rows: queue.upstreams })}
      ${table({ label: 'Keys with requests', key: ({ organization, name }) => `${organization} ${name}`, columns: keyColumns, rows: queue.keys, empty: nobody })}
    </section>`
}

const nobody = empty('No requests', 'Nothing runs or waits at this moment.')

const tokens = { title: 'Tokens per second', align: /** @type {const} */ ('end') }

/** @type {Column<Queue['upstreams'][number]>[]} */
const serverColumns = [
  { title: 'Server', isHeader: true, cell: ({ name }) => stored(name, 120) },
  {
    title: 'Running',
    align: 'end',
    cell: ({ running, max_running: most }) => (most === null ? count(running) : `${count(running)} of ${count(most)}`),
  },
  { title: 'Waiting', align: 'end', cell: ({ waiting }) => count(waiting) },
  { ...tokens, cell: ({ tokens_per_second: rate }) => count(rate) },
  { title: 'State', cell: state },
]

/** @type {Column<Queue['keys'][number]>[]} */
const keyColumns = [
  { title: 'Key', isHeader: true, cell: ({ name }) => stored(name, 120) },
  { title: 'Organization', cell: ({ organization }) => stored(organization, 120) },
  { title: 'Running', align: 'end', cell: ({ running }) => count(running) },
  { title: 'Waiting', align: 'end', cell: ({ waiting }) => count(waiting) },
  { ...tokens, cell: ({ tokens_per_second: rate }) => count(rate) },
]

/** @param {Queue['upstreams'][number]} server */
function state({ rests, probe, failing }) {
  const whole = rests.find(({ model }) => model === null)
  const models = rests.length - (whole === undefined ? 0 : 1)
  const parts = [
    failing === null
      ? []
      : [
          html`${badge('bad', 'requests fail')} <span class="muted">since ${ago(failing.since)}:</span> ${stored(failing.problem, 200)}`,
        ],
    whole === undefined ? [] : [html`${badge('bad', 'rests')} <span class="muted">since ${ago(whole.since)}</span>`],
    models === 0 ? [] : [badge('off', `${count(models)} ${models === 1 ? 'model rests' : 'models rest'}`)],
    probe?.problem === undefined || probe.problem === null
      ? []
      : [html`${badge('bad', 'probe fails')} ${stored(probe.problem, 200)}`],
    probe?.ok === true ? [badge('ok', 'probe responds', `${count(probe.milliseconds)} ms`)] : [],
  ].flat()
  return parts.length === 0 ? html`<span class="muted">–</span>` : parts.map((part) => html`<div>${part}</div>`)
}
