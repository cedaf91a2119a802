// Try a token: decodes it here, and asks the server which step of an exchange would refuse it. Nothing is exchanged or stored.
/** @import { Explanation } from '../../admin/transport/response-types.ts' */
/** @import { Page, View } from '../types.ts' */
import { send } from './client.js'
import { createDraft, form } from './form.js'
import { createPolicyFrom } from './from-token.js'
import { html, nothing } from './lit-html.js'
import { readHelp, whatToDo } from './manual.js'
import { ago, at, badge, callout, code, count, facts, heading, json, problem, stored } from './parts.js'
import { planNotice } from './plan.js'
import { href } from './router.js'
import { table } from './table.js'

/** What the server accepts. Longer texts would only block the browser. */
const tokenCharactersMax = 16_384

/** @param {unknown} value */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Header and payload, or undefined for a text that is no JWT. @param {string} token @returns {Record<string, any>[] | undefined} */
export function decode(token) {
  try {
    const parts = token
      .split('.')
      .slice(0, 2)
      .map((part) => {
        const bytes = Uint8Array.from(atob(part.replaceAll('-', '+').replaceAll('_', '/')), (character) =>
          character.charCodeAt(0),
        )
        return JSON.parse(new TextDecoder().decode(bytes))
      })
    return parts.length === 2 && parts.every(isObject) ? parts : undefined
  } catch {
    return undefined
  }
}

/** @type {View} */
export const view = (page) => {
  /** @type {Explanation[] | undefined} */
  let explanations
  /** @type {unknown} */
  let failure
  let busy = false
  let tooLong = 0
  const draft = createDraft(page, { token: '', policy: page.query.policy ?? '' }, () => {
    ;[explanations, failure, tooLong] = [undefined, undefined, 0]
  })
  /** A long text never reaches the field: to show it takes the browser seconds. @param {ClipboardEvent | DragEvent} event */
  const refuseLong = (event) => {
    const data = 'clipboardData' in event ? event.clipboardData : event.dataTransfer
    const { length } = data?.getData('text') ?? ''
    if (!(event.target instanceof HTMLTextAreaElement) || length <= tokenCharactersMax) return
    event.preventDefault()
    tooLong = length
    page.update()
  }
  async function judge() {
    ;[busy, failure] = [true, undefined]
    page.update()
    const { token, policy } = draft.values
    try {
      await readHelp()
      explanations = (
        await send('POST', '/workload-identity/policies/check', {
          token: token.trim(),
          ...(policy === '' ? {} : { policy }),
        })
      ).data
    } catch (error) {
      failure = error
    }
    busy = false
    page.update()
  }
  return () => {
    const token = draft.values.token.trim()
    const length = tooLong || token.length
    const isLong = length > tokenCharactersMax
    const decoded = token === '' || isLong ? undefined : decode(token)
    const error = isLong
      ? `This has ${count(length)} characters, and a token has at most ${count(tokenCharactersMax)}: copy only the token`
      : token !== '' && decoded === undefined
        ? 'This is not a JWT: it has no readable header and payload'
        : undefined
    return html`${planNotice(page)}<div class="columns">
      <section class="card" @paste=${refuseLong} @drop=${refuseLong}>
        ${callout('info', 'Nothing is exchanged or stored. The token is decoded in this browser, and the server only checks it.')}
        ${form(
          { onSubmit: () => void judge(), submit: 'Check the token', busy, disabled: token === '' || isLong },
          html`${draft.field('token', 'Token (JWT)', { rows: 6, mono: true, placeholder: 'eyJhbGciOi…', error })}
          ${draft.field('policy', 'Policy', { required: false, help: 'Its name or id. Without one, the five policies that the token comes nearest to are shown.' })}`,
        )}
      </section>
      <section class="card">${heading('Decoded', decoded === undefined ? nothing : create(page, decoded))}${decoded === undefined ? html`<p class="muted">Paste a token to see what it says.</p>` : contents(decoded)}</section>
    </div>
    ${failure === undefined ? nothing : problem(failure)}
    <div class="view" role="status">
      ${explanations?.length === 0 ? callout('warn', 'There is no policy yet that could accept it.') : nothing} ${explanations?.map(explained)}
    </div>`
  }
}

/** @param {Page} page @param {Record<string, any>[]} decoded */
function create(page, [, payload = {}]) {
  if (!page.may('policies.create') || typeof payload.iss !== 'string') return nothing
  const from = () => createPolicyFrom({ issuerUrl: payload.iss, claims: payload })
  return html`<button type="button" @click=${from}>Create a policy from this token</button>`
}

/** @param {Record<string, any>[]} decoded */
function contents([header, payload]) {
  const time = (/** @type {string} */ name) => {
    const at = new Date(typeof payload?.[name] === 'number' ? payload[name] * 1_000 : Number.NaN)
    return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
  }
  const [issued, expires] = [time('iat'), time('exp')]
  return html`${facts([
    ['Issued', issued === undefined ? '–' : at(issued)],
    ['Expires', expires === undefined ? '–' : html`${at(expires)} (${ago(expires)})`],
  ])}
    ${code(json(header), 'header')} ${code(json(payload), 'payload')}`
}

/** @param {Explanation} explanation */
function explained({ policy_id, policy_name, accepted, steps, condition = [] }) {
  return html`<section class="card">
    ${heading(html`<a href=${href(['policies', policy_id])}>${stored(policy_name, 120)}</a>`, accepted ? badge('ok', 'would be accepted') : badge('bad', 'would be refused'))}
    ${table({
      label: `Steps under ${policy_name.slice(0, 80)}`,
      columns: [
        { title: 'Step', isHeader: true, cell: ({ step }) => step },
        { title: 'Outcome', cell: ({ ok }) => (ok ? badge('ok', 'passed') : badge('bad', 'refused')) },
        {
          title: 'Why, and what to do',
          cell: ({ ok, reason, detail }) =>
            ok
              ? html`<span class="muted">–</span>`
              : html`<span class="mono">${reason}</span>${detail === undefined ? nothing : html` <span class="muted">(${stored(detail, 1_000)})</span>`}<div class="small">${whatToDo(reason)}</div>`,
        },
      ],
      rows: steps,
    })}
    ${
      condition.length === 0
        ? nothing
        : html`<h3>Parts of the condition</h3>${table({
            label: 'Parts of the condition',
            columns: [
              {
                title: 'Part',
                isHeader: true,
                cell: ({ source }) => html`<code>${stored(source)}</code>`,
              },
              {
                title: 'Value for this token',
                cell: ({ value, error }) =>
                  error === undefined
                    ? html`<code>${stored(value)}</code>`
                    : html`${badge('bad', 'error')} ${stored(error)}`,
              },
            ],
            rows: condition,
          })}`
    }
  </section>`
}
