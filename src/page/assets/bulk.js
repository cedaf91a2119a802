// Several rows at once: boxes to choose them, and a bar with what can be done to all that are chosen. `forEach` does it one by one, says how
// many worked, and offers to undo it where that is possible.
/** @import { Content, Page } from '../types.ts' */
import { asProblem } from './client.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { count } from './parts.js'

/**
 * @template Row
 * @typedef {{ title: string, isDanger?: boolean, act: (rows: readonly Row[]) => Promise<void> }} BulkAction
 * @typedef {object} Choosing
 * @property {() => Content} all the box in the head of the table
 * @property {(row: Row) => Content} one the box of a row
 */

/** @param {Page} page */
export function createSelection(page) {
  /** @type {Set<unknown>} */
  let chosen = new Set()
  return {
    /**
     * @template Row
     * @param {readonly Row[]} rows those that are shown: others are not chosen any more
     * @param {(row: Row) => unknown} key @param {(row: Row) => string} name
     */
    of(rows, key, name) {
      const picked = rows.filter((row) => chosen.has(key(row)))
      const isAll = picked.length === rows.length
      const set = (/** @type {Iterable<unknown>} */ keys) => {
        chosen = new Set(keys)
        page.update()
      }
      return {
        all: () =>
          html`<input type="checkbox" aria-label="Choose all rows" .checked=${isAll} .indeterminate=${picked.length > 0 && !isAll} @change=${() => set(isAll ? [] : rows.map(key))} />`,
        one: (/** @type {Row} */ row) => {
          const toggle = () =>
            set(
              chosen.has(key(row))
                ? picked.map(key).filter((each) => each !== key(row))
                : [...picked.map(key), key(row)],
            )
          return html`<input type="checkbox" aria-label=${`Choose ${name(row).slice(0, 100)}`} .checked=${chosen.has(key(row))} @change=${toggle} />`
        },
        /** @param {readonly BulkAction<Row>[]} actions @returns {Content} */
        bar(actions) {
          if (picked.length === 0) return nothing
          const run = (/** @type {BulkAction<Row>} */ { act }) =>
            page.run(async () => {
              await act(picked)
              set([])
            })
          return html`<div class="bulk" role="group" aria-label="Chosen rows"><strong role="status">${count(picked.length)} chosen</strong>
            ${actions.map((each) => html`<button type="button" class=${each.isDanger ? 'danger' : ''} @click=${() => run(each)}>${each.title}</button>`)}
            <button type="button" class="quiet" @click=${() => set([])}>Choose none</button></div>`
        },
      }
    },
  }
}

/**
 * Does something to each row, one after the other, and goes on after a failure.
 * @template Row
 * @param {Page} page @param {readonly Row[]} rows @param {(row: Row) => Promise<unknown>} act
 * @param {{ words: (number: string) => string, undo?: (row: Row) => Promise<unknown> }} options `words` says what was done, such as `3 paused`
 */
export async function forEach(page, rows, act, { words, undo }) {
  /** @type {Row[]} */
  const done = []
  /** @type {unknown[]} */
  const failures = []
  for (const row of rows)
    await act(row).then(
      () => done.push(row),
      (error) => failures.push(error),
    )
  await page.refresh()
  if (failures.length > 0)
    notify('bad', `${count(failures.length)} of ${count(rows.length)} failed: ${asProblem(failures[0]).message}`)
  if (done.length === 0) return
  const back =
    undo === undefined
      ? undefined
      : () => page.run(() => forEach(page, done, undo, { words: (number) => `${number} undone` }))
  notify('ok', words(count(done.length)), back)
}
