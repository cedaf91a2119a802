// The form that creates or changes a key. The secret of a new key is shown once.
/** @import { Key } from '../report-types.ts' */
/** @import { Page } from '../types.ts' */
import { asProblem, get, segment, send } from './client.js'
import { openDialog } from './dialog.js'
import { conflict } from './diff.js'
import { createDraft, focusFirstError, form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { code, loading, problem, readOnly } from './parts.js'
import { go, href } from './router.js'

const path = '/keys'

/** What was typed as the API takes it; an empty field removes a limit. @param {Record<string, string>} values */
function bodyOf(values) {
  const of = (/** @type {string} */ name) => (values[name] ?? '').trim()
  const number = (/** @type {string} */ name) => (of(name) === '' ? null : Number(of(name)))
  const lines = (/** @type {string} */ name) => {
    const found = of(name)
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
    return found.length === 0 ? null : found
  }
  return {
    name: of('name'),
    limit: number('limit'),
    limit_reset: of('limit') === '' || of('limit_reset') === '' ? null : of('limit_reset'),
    requests_per_minute: number('requests_per_minute'),
    tokens_per_minute: number('tokens_per_minute'),
    allowed_models: lines('allowed_models'),
    allowed_presets: lines('allowed_presets'),
    expires_at: of('expires_at') === '' ? null : new Date(of('expires_at')).toISOString(),
  }
}

/** @param {Partial<Key>} key */
function valuesOf({
  name = '',
  limit,
  limit_reset: reset,
  requests_per_minute: requests,
  tokens_per_minute: tokens,
  allowed_models: models,
  allowed_presets: presets,
  expires_at: expires,
}) {
  const local = expires
    ? new Date(Date.parse(expires) - new Date(expires).getTimezoneOffset() * 60_000).toISOString()
    : ''
  return {
    name,
    limit: String(limit ?? ''),
    limit_reset: reset ?? '',
    requests_per_minute: String(requests ?? ''),
    tokens_per_minute: String(tokens ?? ''),
    allowed_models: (models ?? []).join('\n'),
    allowed_presets: (presets ?? []).join('\n'),
    expires_at: local.slice(0, 16),
  }
}

/** @param {Page} page @param {string} [hash] none for a new key */
function createEdited(page, hash) {
  return {
    page,
    hash,
    self: `${path}/${segment(hash ?? '')}`,
    draft: createDraft(page, valuesOf({})),
    isReady: hash === undefined,
    isManagement: false,
    busy: false,
    etag: /** @type {string | undefined} */ (undefined),
    theirs: /** @type {Key | undefined} */ (undefined),
    failure: /** @type {unknown} */ (undefined),
  }
}
/** @typedef {ReturnType<typeof createEdited>} Edited */

/** @param {Edited} edited */
async function open(edited) {
  const { data, etag } = await get(edited.self)
  edited.draft.values = valuesOf(data)
  Object.assign(edited, { etag, isReady: true, theirs: undefined, isManagement: data.kind !== 'inference' })
}

/** @param {Edited} edited */
async function save(edited) {
  const { page, hash, self, draft, isManagement } = edited
  const { name, expires_at, ...limits } = bodyOf(draft.values)
  const body = isManagement ? { name, expires_at } : { name, expires_at, ...limits }
  Object.assign(edited, { busy: true, failure: undefined })
  page.update()
  try {
    if (hash === undefined) {
      const made = await send(
        'POST',
        path,
        Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)),
      )
      const place = location.hash
      await showSecret(made.key)
      if (location.hash === place) go(['keys', made.data.hash])
      return
    }
    await send('PATCH', self, body, { etag: edited.etag })
    notify('ok', 'The key was changed')
    go(['keys', hash])
  } catch (error) {
    edited.failure = error
    if (asProblem(error).status === 412) {
      const { data: theirs, etag } = await get(self)
      Object.assign(edited, { theirs, etag })
    }
    focusFirstError()
  } finally {
    edited.busy = false
    page.update()
  }
}

/** @param {Page} page @param {string} [hash] none for a new key */
export function keyForm(page, hash) {
  page.title(hash === undefined ? 'New key' : 'Edit key')
  const edited = createEdited(page, hash)
  page.poll(async () => {
    if (!edited.isReady) await open(edited)
  }, 86_400)
  return () => {
    const { draft, busy, isManagement, isReady } = edited
    if (!page.canWrite) return readOnly()
    if (!isReady) return loading()
    const asked = {
      onSubmit: () => void save(edited),
      submit: hash === undefined ? 'Create key' : 'Save',
      busy,
      disabled: draft.values.name.trim() === '',
      cancel: href(hash === undefined ? ['keys'] : ['keys', hash]),
    }
    return html`<section class="card narrow">${form(
      asked,
      html`${trouble(edited)} ${draft.field('name', 'Name', { charactersMax: 128 })} ${isManagement ? nothing : limits(edited)}
      ${draft.field('expires_at', 'Expires', { required: false, type: 'datetime-local', help: 'In your local time' })}`,
    )}</section>`
  }
}

/** @param {Edited} edited */
function limits({ draft }) {
  const number = { required: false, type: /** @type {const} */ ('number') }
  const lines = { required: false, rows: 3, mono: true, help: 'One per line; * stands for any text. Empty allows all.' }
  return html`<div class="fields">
      ${draft.field('limit', 'Budget in US dollars', number)}
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
      ${draft.field('requests_per_minute', 'Requests a minute', number)} ${draft.field('tokens_per_minute', 'Tokens a minute', number)}
    </div>
    <div class="fields">${draft.field('allowed_models', 'Allowed models', lines)} ${draft.field('allowed_presets', 'Allowed presets', lines)}</div>`
}

/** What the server refused, or what somebody else saved meanwhile. @param {Edited} edited */
function trouble(edited) {
  const { page, theirs, failure, draft } = edited
  if (theirs === undefined) return failure === undefined ? nothing : problem(failure)
  return conflict('key', bodyOf(valuesOf(theirs)), bodyOf(draft.values), () => page.run(() => open(edited)))
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
