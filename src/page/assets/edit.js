// A record while somebody edits it, for every form: what was opened, what was typed (drafts.js keeps it), saving only what
// differs, and both versions (versions.js) where another admin was first. `createEdit(page, kind)` begins it, `begin` fills it, `trouble`
// shows what stands in the way, and `saveEdit` saves.
/** @import { Content, Page } from '../types.ts' */
/** @import { Field } from './form.js' */
/** @import { NumberRule } from './number.js' */
/** @import { Conflict } from './versions.js' */
import { asProblem, get, isNoResponse, send } from './client.js'
import { serverReturns } from './connection.js'
import { forgetDraft, keepDraft, readDraft } from './drafts.js'
import { createDraft, focusFirstError } from './form.js'
import { html, nothing } from './lit-html.js'
import { forgetNotices, notify } from './notice.js'
import { numberProblem } from './number.js'
import { callout, problem } from './parts.js'
import { identity, isDecided, isSame, versions } from './versions.js'
import { whoOf } from './you.js'

/** @typedef {Record<string, any>} Values */

/**
 * @template {Values} V
 * @typedef {object} Kind
 * @property {string} what such as `policy`
 * @property {string} path where a new one is posted
 * @property {string} [self] where a saved one is
 * @property {() => Promise<{ data: any, etag?: string | undefined }>} [read] instead of reading `self`
 * @property {V} blank
 * @property {(data: any) => V} valuesOf what the fields hold of a record
 * @property {(values: V) => Record<string, unknown>} bodyOf what the API takes; null removes a value
 * @property {Partial<Record<keyof V, NumberRule>>} [numbers] the fields that hold numbers
 * @property {(values: V) => Partial<Record<keyof V, string>>} [problemsIn] what is wrong with what was typed, by field
 * @property {(name: keyof V | '') => void} [onChange] without a name, when all may have changed
 * @property {(values: V) => Values} [split] the parts in which two versions are compared; the fields where it is missing
 * @property {(parts: Values, values: V) => V} [join] the opposite
 * @property {Record<string, (value: any) => string>} [words] how two versions of a part are shown that is no text
 * @property {readonly (keyof V)[]} [own] what the form alone has, and the record does not: nobody else changes it
 * @property {(values: V, etag: string | undefined) => Promise<any>} [save] instead of POST and PATCH of what `bodyOf` returns
 */

/** @template {Values} V @param {Page} page @param {Kind<V>} kind */
export function createEdit(page, kind) {
  const edit = {
    page,
    kind,
    name: [page.session.organization.id, page.session.key.id, whoOf(page.session), kind.what, ...page.path].join(' '),
    isNew: kind.self === undefined,
    self: kind.self ?? kind.path,
    draft: createDraft(page, kind.blank, (name) => {
      edit.isKept = false
      keep(edit)
      kind.onChange?.(name)
    }),
    /** What the fields held before somebody typed. */
    opened: kind.blank,
    /** @type {string | undefined} */
    etag: undefined,
    isReady: false,
    isRestored: false,
    /** Whether somebody comes back to the draft. */
    isKept: false,
    /** For a link to something that the form needs, and that leads back. */
    goOn: () => {
      edit.isKept = true
      keep(edit)
    },
    /** @type {Conflict<V> | undefined} */
    conflict: undefined,
    /** @type {unknown} */
    failure: undefined,
    /** How often the server had come back before the failure. */
    failedBefore: 0,
    /** The numbers that kept it from being saved. @type {Set<keyof V>} */
    refused: new Set(),
    busy: false,
  }
  page.guard({
    isUnsaved: () => edit.isReady && !edit.isKept && isUnsaved(edit),
    discard: () => forgetDraft(edit.name),
  })
  return edit
}
/** @template {Values} V @typedef {ReturnType<typeof createEdit<V>>} Edit */

/** @template {Values} V @param {Edit<V>} edit */
function isUnsaved({ draft, opened }) {
  return !isSame(draft.values, opened)
}

/** What the buttons of a form say beside them. @template {Values} V @param {Edit<V>} edit */
export function unsavedMark(edit) {
  return isUnsaved(edit) ? html`<span class="muted push">Unsaved changes</span>` : nothing
}

/** @template {Values} V @param {Edit<V>} edit */
function keep(edit) {
  const { name, draft, opened, etag, conflict } = edit
  if (isUnsaved(edit)) keepDraft(name, { values: draft.values, opened, etag, conflict })
  else forgetDraft(name)
}

/** Fills the form, with what was typed before where it was kept. @template {Values} V @param {Edit<V>} edit @param {V} values @param {string} [etag] */
export function begin(edit, values, etag) {
  const kept = readDraft(edit.name)
  edit.opened = { ...values, ...kept?.opened }
  edit.draft.values = { ...values, ...kept?.values }
  Object.assign(edit, {
    etag: kept === undefined ? etag : kept.etag,
    conflict: kept?.conflict,
    failure: undefined,
    isRestored: kept !== undefined,
    isReady: true,
  })
}

/** The record as it is now. @template {Values} V @param {Edit<V>} edit */
const readRecord = ({ kind, self }) => kind.read?.() ?? get(self)

/** Reads the record and fills the form. @template {Values} V @param {Edit<V>} edit */
export async function openEdit(edit) {
  const { data, etag } = await readRecord(edit)
  begin(edit, edit.kind.valuesOf(data), etag)
  edit.page.within(data.name ?? data.slug ?? '')
  return data
}

/** A field for a number. @template {Values} V @param {Edit<V>} edit @param {string & keyof V} name @param {string} label @param {Partial<Field>} [more] */
export function numberField({ draft, kind, refused }, name, label, more = {}) {
  const rule = kind.numbers?.[name]
  const text = draft.values[name].trim()
  // Shown at once and not when the field is left: it would push away the button that somebody presses.
  const isBegun = text === '' || /[.,]$/.test(text)
  return draft.field(name, label, {
    inputMode: rule?.isWhole ? 'numeric' : 'decimal',
    error: isBegun && !refused.has(name) ? undefined : numberProblem(text, rule),
    ...more,
  })
}

/** Only what differs from what was opened: another admin's change of another field stays. @template {Values} V @param {Edit<V>} edit */
function changesOf({ kind, draft, opened, isNew }) {
  const before = isNew ? {} : kind.bodyOf(opened)
  return Object.fromEntries(
    Object.entries(kind.bodyOf(draft.values)).filter(([name, value]) =>
      isNew ? value !== null : !isSame(value, before[name]),
    ),
  )
}

/** @template {Values} V @param {Edit<V>} edit */
function sendEdit(edit) {
  const { kind, draft, etag, isNew, self } = edit
  if (kind.save !== undefined) return kind.save(draft.values, etag)
  const changes = changesOf(edit)
  if (!isNew && Object.keys(changes).length === 0) return undefined
  return send(isNew ? 'POST' : 'PATCH', self, changes, { etag })
}

/** @template {Values} V @param {Edit<V>} edit */
function hasWrongNumber({ kind, draft, refused }) {
  const rules = /** @type {[keyof V, NumberRule][]} */ (Object.entries(kind.numbers ?? {}))
  const wrong = rules.filter(([name, rule]) => numberProblem(draft.values[name], rule) !== undefined)
  for (const [name] of wrong) refused.add(name)
  return wrong.length > 0
}

/**
 * Saves what was typed, once at a time, and over another version only after somebody decided it. `finish` gets the response, or undefined where nothing differed.
 * @template {Values} V @param {Edit<V>} edit @param {(response: any) => unknown} finish @returns {Promise<void>}
 */
export async function saveEdit(edit, finish) {
  if (edit.busy) return
  if (!isDecided(edit)) return showTrouble()
  edit.conflict = undefined
  forgetNotices()
  edit.draft.errors = edit.kind.problemsIn?.(edit.draft.values) ?? {}
  if (hasWrongNumber(edit) || Object.keys(edit.draft.errors).length > 0) {
    edit.page.update()
    return focusFirstError()
  }
  Object.assign(edit, { busy: true, failure: undefined })
  edit.page.update()
  try {
    const response = await sendOver(edit)
    if (edit.conflict !== undefined) return showTrouble()
    forgetDraft(edit.name)
    edit.opened = edit.draft.values
    await finish(response)
  } catch (error) {
    if (asProblem(error).status !== 401) refuse(edit, error)
  } finally {
    edit.busy = false
    edit.page.update()
  }
}

/** Each problem stands at its field; what concerns a field that the form does not show stands above. @template {Values} V @param {Edit<V>} edit @param {unknown} error */
function refuse(edit, error) {
  const problems = Object.entries(asProblem(error).fields)
  const isShown = (/** @type {string} */ name) => document.getElementById(`f-${name}`) !== null
  const at = problems.filter(([name]) => isShown(name))
  Object.assign(edit.draft.errors, Object.fromEntries(at))
  if (problems.length > 0 && at.length === problems.length) return focusFirstError()
  Object.assign(edit, { failure: error, failedBefore: serverReturns() })
  showTrouble()
}

/** Sends it again where the other admin changed nothing that this form has, such as a pause. @template {Values} V @param {Edit<V>} edit @returns {Promise<any>} */
async function sendOver(edit) {
  try {
    return await sendEdit(edit)
  } catch (error) {
    if (asProblem(error).status !== 412) throw error
    await meet(edit)
    return edit.conflict === undefined ? sendOver(edit) : undefined
  }
}

/** Who was first, and when; undefined where nobody may read it. @param {string | undefined} id @returns {Promise<import('./versions.js').Conflict<any>['by']>} */
async function lastChangeOf(id) {
  if (id === undefined) return undefined
  const { data } = await get('/workload-identity/audit/changes', { target_id: id, limit: 1 }).catch(() => ({
    data: [],
  }))
  const [change] = /** @type {import('../../admin/transport/response-types.ts').Change[]} */ (data)
  return change && { name: change.actor_subject ?? change.actor_key_name ?? 'a local command', at: change.at }
}

/** Takes over what only the other admin changed, and shows the rest. @template {Values} V @param {Edit<V>} edit */
async function meet(edit) {
  const { data, etag } = await readRecord(edit)
  const { kind, opened, draft } = edit
  const { split = identity, join = identity, own = [] } = kind
  const theirs = { ...kind.valuesOf(data), ...Object.fromEntries(own.map((name) => [name, opened[name]])) }
  const [before, now, mine] = [split(opened), split(theirs), { ...split(draft.values) }]
  for (const name of Object.keys({ ...before, ...now })) if (isSame(mine[name], before[name])) mine[name] = now[name]
  draft.values = join(mine, draft.values)
  const conflict = isSame(before, now)
    ? undefined
    : { opened, theirs, typed: JSON.stringify(draft.values), by: await lastChangeOf(data.id) }
  Object.assign(edit, { conflict, opened: theirs, etag })
  keep(edit)
  kind.onChange?.('')
}

/** @template {Values} V @param {Edit<V>} edit @param {() => void} save */
function replaceTheirs(edit, save) {
  edit.conflict = undefined
  keep(edit)
  save()
}

/** @template {Values} V @param {Edit<V>} edit */
function takeTheirs(edit) {
  edit.draft.values = { ...edit.opened }
  edit.conflict = undefined
  keep(edit)
  edit.kind.onChange?.('')
  edit.page.update()
}

/** To what stands in the way, which can be far above the button that was pressed. */
function showTrouble() {
  setTimeout(() => {
    const element = document.getElementById('trouble')
    element?.scrollIntoView({ block: 'start' })
    element?.focus({ preventScroll: true })
  })
}

/**
 * What stands in the way of saving: what the server refused, what another admin saved meanwhile, or what was typed before.
 * @template {Values} V @param {Edit<V>} edit @param {() => void} save @param {() => Promise<unknown>} reopen
 */
export function trouble(edit, save, reopen) {
  const { conflict, isRestored, page, name } = edit
  const isOver = isNoResponse(edit.failure) && edit.failedBefore !== serverReturns()
  const failure = isOver ? undefined : edit.failure
  const discard = () =>
    page.run(async () => {
      forgetDraft(name)
      await reopen()
      notify('ok', 'The draft was discarded')
    })
  if (conflict === undefined && failure === undefined)
    return isRestored && isUnsaved(edit)
      ? callout(
          'info',
          html`<div class="stack"><p>You typed this before, and it is not saved yet.</p><div><button type="button" @click=${discard}>Discard the draft</button></div></div>`,
        )
      : nothing
  return html`<div id="trouble" role="group" aria-label="Not saved" tabindex="-1">
    ${conflict === undefined ? problem(failure) : versions(edit, conflict, { replace: () => replaceTheirs(edit, save), take: () => takeTheirs(edit) })}
  </div>`
}
