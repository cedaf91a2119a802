// Forms. `field({ label, name, value, onInput, help, error })` is a labeled control with its help and its error, and
// `options` makes it a select. `choice`, `checkbox` and `switchButton` are the others. `form({ onSubmit, busy, submit })`
// wraps fields; `createDraft(page, values)` holds what was typed.
/** @import { Content } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { count } from './parts.js'
import { inFormWords } from './words.js'
import { fieldZoneText } from './zone.js'

/**
 * @typedef {object} Field
 * @property {string} label
 * @property {string} name unique in the view; the id of the control is `f-NAME`
 * @property {string} value
 * @property {(value: string) => void} onInput at each character
 * @property {(value: string) => void} [onChange] when it is left, or with Enter
 * @property {Content} [help]
 * @property {Content} [error]
 * @property {'text' | 'url' | 'password' | 'number' | 'datetime-local'} [type]
 * @property {readonly (readonly [value: string, label: string])[]} [options] makes it a select
 * @property {number} [rows] makes it a text area
 * @property {boolean} [required]
 * @property {boolean} [mono] for code
 * @property {boolean} [disabled]
 * @property {string} [placeholder]
 * @property {'numeric' | 'decimal'} [inputMode]
 * @property {number} [charactersMax] a longer text stays in the field, with how long it is: a cut one would be saved unseen
 */

/** @param {Field} asked */
export function field(asked) {
  const field = { ...asked, error: errorAt(asked), help: helpOf(asked) }
  return shell(field, control(field, `f-${field.name}`))
}

/** A browser shows no zone in a field for a time. @param {Field} field @returns {Content} */
function helpOf({ help, type }) {
  if (type !== 'datetime-local') return help
  return html`${help === undefined ? nothing : html`${help}. `}Time zone: ${fieldZoneText()}`
}

/** What stands at a field: its error, or that its text is too long, in characters as the server counts them. @param {Pick<Field, 'error' | 'value' | 'charactersMax'>} field */
export function errorAt({ error, value, charactersMax = Infinity }) {
  if (error !== undefined || value.length <= charactersMax) return error
  const length = [...value].length
  return length > charactersMax
    ? `Use at most ${count(charactersMax)} characters: this has ${count(length)}`
    : undefined
}

/** A control with its label, help and error. @param {Pick<Field, 'name' | 'label' | 'help' | 'error' | 'required'>} field @param {Content} content */
export function shell({ name, label, help, error, required }, content) {
  const id = `f-${name}`
  return html`<div class="field ${error === undefined ? '' : 'invalid'}">
    <label for=${id}>${label}${required === false ? html` <span class="muted">optional</span>` : nothing}</label>
    ${content}
    ${help === undefined ? nothing : html`<p class="help" id=${`${id}-help`}>${help}</p>`}
    <p class="error" id=${`${id}-error`} role="alert">${error ?? nothing}</p>
  </div>`
}

/** @param {Event} event */
export const textOf = ({ target }) => /** @type {HTMLInputElement} */ (target).value

/** @param {Field} field @param {string} id */
function control(
  {
    name,
    value,
    onInput,
    onChange,
    error,
    help,
    options,
    rows,
    type = 'text',
    required,
    mono,
    disabled,
    placeholder,
    inputMode,
  },
  id,
) {
  const read = (/** @type {Event} */ event) => onInput(textOf(event))
  const leave = (/** @type {Event} */ event) => onChange?.(textOf(event))
  const described = `${help === undefined ? '' : `${id}-help `}${id}-error`
  const invalid = error === undefined ? nothing : 'true'
  if (options !== undefined)
    return html`<select id=${id} name=${name} @change=${read} aria-describedby=${described} aria-invalid=${invalid} ?disabled=${disabled} ?required=${required}>
      ${options.map(([key, text]) => html`<option value=${key} ?selected=${key === value} .selected=${key === value}>${text}</option>`)}
    </select>`
  if (rows !== undefined)
    return html`<textarea id=${id} name=${name} rows=${rows} class=${mono ? 'mono' : ''} .value=${value} @input=${read} aria-describedby=${described} aria-invalid=${invalid} ?disabled=${disabled} ?required=${required} placeholder=${placeholder ?? nothing} spellcheck=${mono ? 'false' : nothing} dir="auto"></textarea>`
  return html`<input id=${id} name=${name} type=${type} class=${mono ? 'mono' : ''} .value=${value} @input=${read} @change=${leave} aria-describedby=${described} aria-invalid=${invalid} ?disabled=${disabled} ?required=${required} placeholder=${placeholder ?? nothing} inputmode=${inputMode ?? nothing} autocomplete="off" spellcheck=${mono ? 'false' : nothing} />`
}

/** @param {{ label: string, name: string, checked: boolean, onInput: (checked: boolean) => void, help?: Content }} options */
export function checkbox({ label, name, checked, onInput, help }) {
  const id = `f-${name}`
  const read = (/** @type {Event} */ event) => onInput(/** @type {HTMLInputElement} */ (event.target).checked)
  return html`<div class="checkbox">
    <input type="checkbox" id=${id} name=${name} .checked=${checked} @change=${read} aria-describedby=${help === undefined ? nothing : `${id}-help`} />
    <label for=${id}>${label}</label>
    ${help === undefined ? nothing : html`<p class="help" id=${`${id}-help`}>${help}</p>`}
  </div>`
}

/**
 * One of few, as a row of radio buttons.
 * @param {{ label: string, name: string, value: string, options: readonly (readonly [string, string])[], onInput: (value: string) => void }} options
 */
export function choice({ label, name, value, options, onInput }) {
  return html`<fieldset class="choice">
    <legend>${label}</legend>
    <div>${options.map(
      ([key, text]) =>
        html`<label><input type="radio" name=${name} value=${key} .checked=${key === value} @change=${() => onInput(key)} /><span>${text}</span></label>`,
    )}</div>
  </fieldset>`
}

/** A switch that acts at once. @param {{ label: string, on: boolean, disabled?: boolean, onClick: () => void }} options */
export function switchButton({ label, on, disabled = false, onClick }) {
  return html`<button type="button" class="switch" role="switch" aria-checked=${on ? 'true' : 'false'} aria-label=${label} ?disabled=${disabled} @click=${onClick}>
    <span></span>
  </button>`
}

/**
 * A form whose fields are checked by the server. Enter submits, and Ctrl Enter in a field of several lines.
 * @param {{ onSubmit: () => void, submit: string, busy?: boolean, disabled?: boolean, cancel?: string, extra?: Content }} options
 *   `cancel` is the address that the cancel link opens
 * @param {Content} fields
 */
export function form({ onSubmit, submit, busy = false, disabled = false, cancel, extra = nothing }, fields) {
  const onEvent = (/** @type {Event} */ event) => {
    event.preventDefault()
    if (busy || disabled) return
    // Half a date would be sent as none.
    const { elements } = /** @type {HTMLFormElement} */ (event.target)
    const unread = [...elements].find((one) => one instanceof HTMLInputElement && one.validity.badInput)
    if (unread instanceof HTMLInputElement) unread.reportValidity()
    else onSubmit()
  }
  // Enter begins a line where there are several.
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    const own = /** @type {HTMLFormElement} */ (event.currentTarget)
    own.requestSubmit()
  }
  return html`<form novalidate @submit=${onEvent} @keydown=${onKey}>
    ${fields}
    <div class="buttons">
      <button type="submit" class="primary" ?disabled=${disabled} aria-busy=${busy ? 'true' : 'false'}>${busy ? 'Working…' : submit}</button>
      ${cancel === undefined ? nothing : html`<a class="button" href=${cancel}>Cancel</a>`} ${extra}
    </div>
  </form>`
}

/**
 * What was typed into a form. `set(name)` is the function that changes one value and renders; `field(name, label, more)` is
 * a field of it.
 * @template {Record<string, any>} Values
 * @param {{ update: () => void }} page @param {Values} values @param {(name: keyof Values) => void} [onChange]
 */
export function createDraft(page, values, onChange) {
  const draft = {
    values: { ...values },
    /** What the server refused, until somebody changes it. @type {Partial<Record<keyof Values, string>>} */
    errors: {},
    /** @template {keyof Values} Name @param {Name} name @returns {(value: Values[Name]) => void} */
    set: (name) => (value) => {
      draft.values[name] = value
      delete draft.errors[name]
      onChange?.(name)
      page.update()
    },
    /** @param {keyof Values & string} name @param {string} label @param {Partial<Field>} [more] */
    field: (name, label, more = {}) =>
      field({
        name,
        label,
        value: draft.values[name],
        onInput: /** @type {(value: any) => void} */ (draft.set(name)),
        ...more,
        error: more.error ?? inWordsOf(label, name, draft.errors[name]),
      }),
  }
  return draft
}

/** A message about a field of the API in the words of the form: `limit must be …` as `Budget must be …`. @param {string} label @param {string} name @param {string | undefined} message */
export function inWordsOf(label, name, message) {
  return message === undefined ? undefined : inFormWords(label, name, message)
}

/** Runs the last call, a moment after it. @param {() => Promise<unknown>} act */
export function debounce(act, milliseconds = 250) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  return () => {
    clearTimeout(timer)
    timer = setTimeout(act, milliseconds)
  }
}

/** Moves the focus to the first control with an error, after the next rendering, also to one that is folded away. */
export function focusFirstError() {
  setTimeout(() => {
    const found = /** @type {HTMLElement | null} */ (document.querySelector('main [aria-invalid="true"]'))
    found?.closest('details')?.setAttribute('open', '')
    found?.focus()
  })
}
