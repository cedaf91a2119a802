// Short notices in a corner, read out by screen readers: notify('ok', 'Saved'). Errors stay until they are closed; what can be undone has a
// button for it.
/** @import { Content, Tone } from '../types.ts' */
import { icon } from './icons.js'
import { html, nothing, render } from './lit-html.js'

const [secondsShown, secondsToUndo] = [6, 20]

/** @type {{ tone: Tone, content: Content, assertive: boolean, undo?: (() => unknown) | undefined, isUnreached: boolean }[]} */
let shown = []

/** @param {Tone} tone @param {Content} content @param {() => unknown} [undo] @param {{ isUnreached?: boolean }} [more] `isUnreached`: the server did not respond */
export function notify(tone, content, undo, { isUnreached = false } = {}) {
  const notice = { tone, content, assertive: tone === 'bad', undo, isUnreached }
  shown = [...shown.slice(-3), notice]
  show()
  if (tone !== 'bad') setTimeout(() => remove(notice), (undo === undefined ? secondsShown : secondsToUndo) * 1_000)
}

/** What somebody did before says nothing about what they do now. What can still be undone stays. */
export function forgetNotices() {
  shown = shown.filter(({ undo }) => undo !== undefined)
  show()
}

/** Failures belong to the view in which they happened; what was done is said on the next one too. */
export function leaveFailures() {
  shown = shown.filter(({ tone }) => tone !== 'bad')
  show()
}

/** That the server did not respond is over when it does. */
export function forgetUnreached() {
  shown = shown.filter((each) => !each.isUnreached)
  show()
}

/** For another person who signs in, and for what is gone. */
export function clearNotices() {
  shown = []
  show()
}

/** @param {typeof shown[number]} notice */
function remove(notice) {
  shown = shown.filter((each) => each !== notice)
  show()
}

/** @param {typeof shown[number]} notice */
function undoIt(notice) {
  remove(notice)
  notice.undo?.()
}

function show() {
  const list = (/** @type {boolean} */ assertive) =>
    shown
      .filter((each) => each.assertive === assertive)
      .map(
        (each) =>
          html`<div class="notice ${each.tone}">
            ${icon(each.tone)}<div>${each.content}</div>
            ${each.undo === undefined ? nothing : html`<button type="button" @click=${() => undoIt(each)}>Undo</button>`}
            <button type="button" class="quiet icon" aria-label="Close this notice" @click=${() => remove(each)}>
              ${icon('close')}
            </button>
          </div>`,
      )
  const root = document.getElementById('notices')
  if (root === null) return
  render(html`<div role="status">${list(false)}</div><div role="alert">${list(true)}</div>`, root)
}

/** Renders the empty live regions, which screen readers must know before the first notice. */
export const prepareNotices = show
