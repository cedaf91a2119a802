// Two versions of a record, where another admin was first: what they changed beside what is in the form, and whether the person has decided
// which one to keep. edit.js saves.
/** @import { Content } from '../types.ts' */
/** @import { Edit, Values } from './edit.js' */
import { html, nothing } from './lit-html.js'
import { ago, callout, facts, stored } from './parts.js'

/** `theirs` is what another admin saved; `typed` is what was in the form when it was shown; `by` who saved it. @template {Values} V @typedef {{ opened: V, theirs: V, typed: string, by?: { name: string, at: string } | undefined }} Conflict */

/** @param {unknown} one @param {unknown} other */
export const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other)

/** @param {any} values */
export const identity = (values) => values

/** What they changed, and what both changed. @template {Values} V @param {Edit<V>} edit @param {Conflict<V>} conflict */
function compare({ kind: { split = identity }, draft }, { opened, theirs }) {
  const [before, now, mine] = [split(opened), split(theirs), split(draft.values)]
  const changed = Object.keys({ ...before, ...now }).filter((name) => !isSame(before[name], now[name]))
  return { before, now, mine, changed, both: changed.filter((name) => !isSame(now[name], mine[name])) }
}

/** Whether saving loses nothing of theirs, or somebody edited the form since they saw it. @template {Values} V @param {Edit<V>} edit */
export function isDecided(edit) {
  const { conflict, draft } = edit
  if (conflict === undefined || JSON.stringify(draft.values) !== conflict.typed) return true
  return compare(edit, conflict).both.length === 0
}

/** The label of a field, where the form shows it. @param {string} name */
function labelOf(name) {
  const label = document.querySelector(`label[for="f-${CSS.escape(name)}"]`)
  return (
    [...(label?.childNodes ?? [])].find((node) => node instanceof Text && node.data.trim() !== '')?.textContent ?? name
  )
}

/** @param {unknown} value */
const show = (value) =>
  value === undefined || value === null || value === ''
    ? '–'
    : typeof value === 'string'
      ? value
      : JSON.stringify(value)

/**
 * Of each field that they changed: what was opened, theirs, and what is in the form.
 * @template {Values} V @param {Edit<V>} edit @param {Conflict<V>} conflict @param {{ replace: () => void, take: () => void }} choices
 * @returns {Content}
 */
export function versions(edit, conflict, { replace, take }) {
  const { what, words = {} } = edit.kind
  const { before, now, mine, changed, both } = compare(edit, conflict)
  const text = (/** @type {string} */ name, /** @type {unknown} */ value) =>
    stored(show(value === undefined ? value : (words[name]?.(value) ?? value)), 2_000)
  return callout(
    'warn',
    html`<div class="stack">
      <p><strong>Somebody else changed this ${what} while you edited it. Nothing is saved yet.</strong>
        ${both.length === 0 ? 'You changed other fields: the form has both.' : 'You both changed the same: compare. Replace theirs, take theirs, or edit the form and save it.'}</p>
      ${conflict.by === undefined ? nothing : html`<p>Saved by ${stored(conflict.by.name, 80)}, ${ago(conflict.by.at)}.</p>`}
      ${changed.map(
        (name) =>
          html`<div><p><strong>${labelOf(name)}</strong></p>${facts([
            ['When you opened it', text(name, before[name])],
            ['Theirs', html`<del>${text(name, now[name])}</del>`],
            ['In your form', both.includes(name) ? html`<ins>${text(name, mine[name])}</ins>` : 'theirs'],
          ])}</div>`,
      )}
      <div class="actions">
        <button type="button" class="primary" @click=${replace}>${both.length === 0 ? 'Save both' : 'Replace theirs'}</button>
        <button type="button" @click=${take}>Take their version</button>
      </div>
    </div>`,
    true,
  )
}
