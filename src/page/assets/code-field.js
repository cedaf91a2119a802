// A field for text that is code: line numbers beside it, no wrapping, and completion of what is known. While somebody types a word that begins like
// a known one, a list shows the known ones: arrow keys move in it, Enter or Tab take one, Escape closes it.
/** @import { Field } from './form.js' */
import { errorAt, shell, textOf } from './form.js'
import { html, nothing } from './lit-html.js'
import { stored } from './parts.js'

/** `text` is inserted, `about` stands beside it. @typedef {{ text: string, about?: string }} Word */

/** What is being typed at the end of a text. */
const begun = /[\w.["/-]+$/
const shownMax = 8

/** Those that begin like the word before the cursor, and are not that word. @param {readonly Word[]} words @param {string} before @returns {{ start: string, found: Word[] }} */
export function completionsOf(words, before) {
  const [start = ''] = begun.exec(before) ?? []
  if (start.length < 2) return { start, found: [] }
  const low = start.toLowerCase()
  const found = words.filter(({ text }) => text.toLowerCase().startsWith(low) && text !== start)
  return { start, found: found.slice(0, shownMax) }
}

/** How many lines a text has, numbered below each other. @param {string} text */
const numbersOf = (text) => Array.from({ length: text.split('\n').length }, (_, index) => index + 1).join('\n')

/**
 * @param {{ update: () => void }} page @param {() => readonly Word[]} [words] what can be completed
 * @returns {(field: Field) => import('../types.ts').Content}
 */
export function createCodeField(page, words = () => []) {
  /** @type {Word[]} */
  let found = []
  let [start, at] = ['', 0]
  /** @param {Event} event */
  const look = ({ target }) => {
    const { value, selectionStart } = /** @type {HTMLTextAreaElement} */ (target)
    ;({ start, found } = completionsOf(words(), value.slice(0, selectionStart)))
    at = 0
  }
  const close = () => {
    if (found.length > 0) {
      found = []
      page.update()
    }
  }
  /** @param {HTMLTextAreaElement} area @param {Word} word @param {(text: string) => void} onInput */
  const take = (area, word, onInput) => {
    const { selectionStart: end } = area
    // As if it was typed, so that the browser can undo it.
    area.setRangeText(word.text, end - start.length, end, 'end')
    found = []
    onInput(area.value)
  }
  const scroll = (/** @type {Event} */ { target }) => {
    const area = /** @type {HTMLTextAreaElement} */ (target)
    const numbers = area.previousElementSibling
    if (numbers !== null) numbers.scrollTop = area.scrollTop
  }
  return (field) => {
    const { name, value, onInput, rows = 4, help, required } = field
    const error = errorAt(field)
    const id = `f-${name}`
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      const area = /** @type {HTMLTextAreaElement} */ (event.target)
      const [step, word] = [{ ArrowDown: 1, ArrowUp: -1 }[event.key], found[at]]
      if (word === undefined) return
      if (step !== undefined) at = (at + step + found.length) % found.length
      else if (event.key === 'Escape') found = []
      else if (event.key === 'Enter' || event.key === 'Tab') take(area, word, onInput)
      else return
      event.preventDefault()
      event.stopPropagation()
      page.update()
    }
    const type = (/** @type {Event} */ event) => {
      look(event)
      onInput(textOf(event))
    }
    const lines = Math.max(rows, Math.min(value.split('\n').length, 24))
    return shell(
      { ...field, error },
      html`<div class="editor">
        <pre aria-hidden="true">${numbersOf(value)}</pre>
        <textarea id=${id} name=${name} rows=${lines} wrap="off" class="mono" .value=${value} @input=${type} @keydown=${onKey} @blur=${close} @click=${close} @scroll=${scroll}
          aria-autocomplete=${words().length > 0 ? 'list' : nothing} aria-controls=${found.length > 0 ? `${id}-list` : nothing} aria-activedescendant=${found.length > 0 ? `${id}-${at}` : nothing}
          aria-describedby=${`${help === undefined ? '' : `${id}-help `}${id}-error`} aria-invalid=${error === undefined ? nothing : 'true'} ?required=${required}
          spellcheck="false" dir="ltr"></textarea>
        <ul id=${`${id}-list`} class="choices" role="listbox" aria-label="Completions" ?hidden=${found.length === 0}>
          ${found.map(
            ({ text, about }, index) =>
              html`<li id=${`${id}-${index}`} role="option" aria-selected=${index === at ? 'true' : 'false'} @mousedown=${(
                /** @type {Event} */ event,
              ) => {
                event.preventDefault()
                const area = document.getElementById(id)
                if (area instanceof HTMLTextAreaElement) take(area, { text }, onInput)
              }}><span class="mono">${text}</span><span class="muted small">${stored(about ?? '', 60)}</span></li>`,
          )}
        </ul>
      </div>`,
    )
  }
}
