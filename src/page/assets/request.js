// One inference request: its outcome, what it cost, and who sent it.
/** @import { InferenceRequest } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
import { get, segment } from './client.js'
import { detailsHead } from './details.js'
import { html, nothing } from './lit-html.js'
import { ago, at, badge, count, facts, loading, money, mono, stored, unknownCost } from './parts.js'
import { proofButton } from './proof.js'
import { goInstead, href } from './router.js'

/** @param {InferenceRequest} request */
export function statusOf({ status, completed, client_left: left, error }) {
  if (left) return badge('off', `${status}`, 'The client left before the end')
  if (status < 400) return completed ? badge('ok', `${status}`) : badge('warn', `${status}`, 'The response was cut off')
  return badge('bad', `${status}`, error ?? '')
}

/** Why it did not work, in one word. @param {InferenceRequest} request */
export function errorOf({ status, completed, client_left: left, error }) {
  const word = error ?? (left ? 'client_left' : status >= 400 ? 'upstream_error' : completed ? null : 'cut_off')
  return word === null ? html`<span class="muted">–</span>` : html`<span class="mono">${word}</span>`
}

/** @param {InferenceRequest} request @param {(value: number) => string} [format] that of its column */
export function costOf({ cost, total_tokens: tokens }, format = money) {
  if (cost !== null) return format(cost)
  return tokens === null ? html`<span class="muted">–</span>` : unknownCost()
}

/** @param {number | null} value */
export const milliseconds = (value) => (value === null ? html`<span class="muted">–</span>` : `${count(value)} ms`)

/** @param {Page} page @param {string} id */
export function requestDetails(page, id) {
  page.title('Request')
  /** @type {any} */
  let found
  page.poll(async () => {
    ;({ data: found } = await get(`/workload-identity/audit/${segment(id)}`))
    if (found.kind === 'exchange') goInstead(['exchanges', id])
  }, 60)
  return () => {
    if (found === undefined || found.kind === 'exchange') return loading()
    const actions = [proofButton(page, { request_id: found.request_id })]
    return html`${detailsHead({ state: statusOf(found), id: found.request_id, idLabel: 'request id', actions })}
      <div class="columns even">
        <section class="card">${facts(requestFacts(found))}</section>
        <section class="card">${facts(callerFacts(found))}</section>
      </div>`
  }
}

/** @param {InferenceRequest} found @returns {[string, Content][]} */
function requestFacts(found) {
  const {
    prompt_tokens: prompt,
    completion_tokens: completion,
    cached_tokens: cached,
    reasoning_tokens: thought,
  } = found
  const tokens = [
    [prompt, 'prompt'],
    [completion, 'response'],
    [cached, 'from a cache'],
    [thought, 'reasoning'],
  ].flatMap(([number, name]) => (typeof number === 'number' ? [`${count(number)} ${name}`] : []))
  return [
    ['Time', html`${at(found.at)} (${ago(found.at)})`],
    ['Error', errorOf(found)],
    ['Endpoint', mono(found.endpoint)],
    [
      'Model',
      html`${mono(found.model)}${found.model_asked === found.model ? nothing : html`, asked for ${mono(found.model_asked)}`}`,
    ],
    ['Preset', stored(found.preset_version)],
    [
      'Server',
      html`${stored(found.upstream)}${found.attempts === null ? nothing : html`, attempt ${count(found.attempts)}`}`,
    ],
    ['Tokens', tokens.length === 0 ? '–' : `${tokens.join(', ')}${found.estimated ? ' (at least)' : ''}`],
    ['Cost', html`${costOf(found)}${found.price === null ? nothing : html` by the price ${mono(found.price)}`}`],
    ['First byte', milliseconds(found.first_byte_milliseconds)],
    ['Duration', html`${milliseconds(found.duration_milliseconds)}${found.streamed ? ', streamed' : nothing}`],
  ]
}

/** @param {InferenceRequest} found @returns {[string, Content][]} */
function callerFacts(found) {
  const { policy_id: policy, issuer_id: issuer } = found
  return [
    [
      'Key',
      html`<a href=${href(['keys'], { search: found.key_name ?? '' })}>${stored(found.key_name ?? found.key_id)}</a>`,
    ],
    [
      'Policy',
      policy === null
        ? 'none: the key itself'
        : html`<a href=${href(['policies', policy])}>${stored(found.policy_name)}</a>`,
    ],
    [
      'Issuer',
      issuer === null
        ? '–'
        : html`<a href=${href(['issuers', issuer])}>${stored(found.issuer_name ?? found.issuer_url)}</a>`,
    ],
    ['Subject', mono(found.subject, 600)],
    ['Attribution', stored(found.attribution)],
    ['User', stored(found.user)],
    ['Session', stored(found.session_id)],
    ['Access token id', mono(found.access_token_id)],
    ['Metadata', found.metadata === null ? '–' : mono(JSON.stringify(found.metadata), 1_000)],
  ]
}
