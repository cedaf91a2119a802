// The form that creates or changes a key. The secret of a new key is shown once.
/** @import { Key } from '../../admin/transport/response-types.ts' */
/** @import { Page } from '../types.ts' */
import { segment } from './client.js'
import { openDialog } from './dialog.js'
import { begin, createEdit, numberField, openEdit, saveEdit, trouble } from './edit.js'
import { form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { numberOf, numberText } from './number.js'
import { code, loading, readOnly } from './parts.js'
import { go, href } from './router.js'

const path = '/keys'

/** What was typed as the API takes it; an empty field removes a limit. @param {Record<string, string>} values */
function bodyOf(values) {
  const of = (/** @type {string} */ name) => (values[name] ?? '').trim()
  const number = (/** @type {string} */ name) => numberOf(of(name))
  const lines = (/** @type {string} */ name) => {
    const found = of(name)
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
    return found.length === 0 ? null : found
  }
  const own = {
    name: of('name'),
    expires_at: of('expires_at') === '' ? null : new Date(of('expires_at')).toISOString(),
  }
  if (values.kind !== 'inference') return own
  return {
    ...own,
    limit: number('limit'),
    limit_reset: of('limit') === '' || of('limit_reset') === '' ? null : of('limit_reset'),
    requests_per_minute: number('requests_per_minute'),
    tokens_per_minute: number('tokens_per_minute'),
    allowed_models: lines('allowed_models'),
    allowed_presets: lines('allowed_presets'),
    labels: pairs(lines('labels')),
    attribute_from_header: of('attribute_from_header') || null,
  }
}

/** Lines of name=value. @param {string[] | null} lines */
function pairs(lines) {
  if (lines === null) return null
  return Object.fromEntries(
    lines.map((line) => [line.split('=')[0]?.trim(), line.split('=').slice(1).join('=').trim()]),
  )
}

/** @param {Partial<Key>} key */
function valuesOf({
  kind = 'inference',
  name = '',
  limit,
  limit_reset: reset,
  requests_per_minute: requests,
  tokens_per_minute: tokens,
  allowed_models: models,
  allowed_presets: presets,
  labels,
  attribute_from_header: header,
  expires_at: expires,
}) {
  const local = expires
    ? new Date(Date.parse(expires) - new Date(expires).getTimezoneOffset() * 60_000).toISOString()
    : ''
  return {
    kind: String(kind),
    name,
    limit: numberText(limit),
    limit_reset: reset ?? '',
    requests_per_minute: numberText(requests),
    tokens_per_minute: numberText(tokens),
    allowed_models: (models ?? []).join('\n'),
    allowed_presets: (presets ?? []).join('\n'),
    labels: Object.entries(labels ?? {})
      .map((pair) => pair.join('='))
      .join('\n'),
    attribute_from_header: header ?? '',
    expires_at: local.slice(0, 16),
  }
}

const whole = { isWhole: true }

/** @param {Page} page @param {string} [hash] none for a new key */
function createKeyEdit(page, hash) {
  const self = hash === undefined ? {} : { self: `${path}/${segment(hash)}` }
  const numbers = { limit: {}, requests_per_minute: whole, tokens_per_minute: whole }
  return createEdit(page, { what: 'key', path, ...self, blank: valuesOf({}), valuesOf, bodyOf, numbers })
}
/** @typedef {ReturnType<typeof createKeyEdit>} Edited */

/** @param {Edited} edited */
const open = async (edited) => (edited.isNew ? begin(edited, valuesOf({})) : openEdit(edited))

/** @param {Edited} edited @param {string} [hash] */
const save = (edited, hash) =>
  saveEdit(edited, async (response) => {
    if (hash !== undefined) {
      notify('ok', response === undefined ? 'Nothing was changed' : 'The key was changed')
      return go(['keys', hash])
    }
    const place = location.hash
    await showSecret(response.key)
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
    const { draft, busy, isReady, conflict } = edited
    if (!page.canWrite) return readOnly()
    if (!isReady) return loading()
    const asked = {
      onSubmit: () => void save(edited, hash),
      submit: hash === undefined ? 'Create key' : 'Save',
      busy,
      disabled: draft.values.name.trim() === '' || conflict !== undefined,
      cancel: href(hash === undefined ? ['keys'] : ['keys', hash]),
    }
    return html`<section class="card narrow">${trouble(
      edited,
      () => void save(edited, hash),
      () => open(edited),
    )}${form(
      asked,
      html`${draft.field('name', 'Name', { charactersMax: 128 })} ${draft.values.kind === 'inference' ? limits(edited) : nothing}
      ${draft.field('expires_at', 'Expires', { required: false, type: 'datetime-local', help: 'In your local time' })}`,
    )}</section>`
  }
}

/** @param {Edited} edited */
function limits(edited) {
  const { draft } = edited
  const optional = { required: false }
  const lines = { required: false, rows: 3, mono: true, help: 'One per line; * stands for any text. Empty allows all.' }
  return html`<div class="fields">
      ${numberField(edited, 'limit', 'Budget in US dollars', { ...optional, help: 'Such as 1250.50' })}
      ${draft.field('limit_reset', 'Budget resets', {
        options: [
          ['', 'never'],
          ['daily', 'every day'],
          ['weekly', 'every week'],
          ['monthly', 'every month'],
        ],
        help: 'In UTC; weeks start on Monday',
      })}
    </div>
    <div class="fields">
      ${numberField(edited, 'requests_per_minute', 'Requests a minute', optional)} ${numberField(edited, 'tokens_per_minute', 'Tokens a minute', optional)}
    </div>
    <div class="fields">${draft.field('allowed_models', 'Allowed models', lines)} ${draft.field('allowed_presets', 'Allowed presets', lines)}</div>
    <div class="fields">
      ${draft.field('labels', 'Labels', { required: false, rows: 2, mono: true, help: 'name=value, one per line. Reports and budgets group keys by them.' })}
      ${draft.field('attribute_from_header', 'Attribution from header', { required: false, mono: true, help: 'Such as x-user. Only for a front end that sets it for each user' })}
    </div>`
}

/** @param {string} text of a new key */
async function showSecret(text) {
  await openDialog(
    'The new key',
    (
      close,
    ) => html`<div class="body"><p>This is the only time that it is shown. Copy it to where it is used. Workloads that a policy lets in do not need it.</p>
        ${code(text, 'key')}</div>
      <div class="buttons"><button type="button" class="primary" @click=${() => close()}>I have copied it</button></div>`,
    { stays: true },
  ).closed
}
