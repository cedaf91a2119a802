// The dialog that adds to what a budget allows until a time.
/** @import { Budget } from '../../admin/transport/response-types.ts' */
import { units } from './budget-amounts.js'
import { segment, send } from './client.js'
import { openDialog } from './dialog.js'
import { field, form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { numberOf, numberProblem } from './number.js'
import { problem } from './parts.js'

const dayMilliseconds = 86_400_000

/** Returns the budget after the top-up; undefined if nothing was added. @param {Budget} budget @param {string} value empty: for every value @returns {Promise<Budget | undefined>} */
export async function topUp(budget, value) {
  const typed = { amount: '', unit: 'usd', value, days: '7', because: '' }
  /** @type {Budget | undefined} */
  let changed
  /** @type {unknown} */
  let failure
  let busy = false
  const set = (/** @type {keyof typeof typed} */ name) => (/** @type {string} */ text) => {
    typed[name] = text
    failure = undefined
    dialog.update()
  }
  const save = async (/** @type {() => void} */ close) => {
    busy = true
    dialog.update()
    try {
      const until = new Date(Date.now() + Number(numberOf(typed.days)) * dayMilliseconds).toISOString()
      const amount = { [typed.unit]: numberOf(typed.amount, { isWhole: typed.unit !== 'usd' }) }
      const more = typed.value.trim() === '' ? {} : { value: typed.value.trim() }
      const body = { ...amount, ...more, until, because: typed.because }
      changed = (await send('POST', `/budgets/${segment(budget.id)}/top-up`, body)).data
      notify('ok', 'The budget was topped up')
      close()
    } catch (error) {
      failure = error
    } finally {
      busy = false
      dialog.update()
    }
  }
  const wrong = () => numberProblem(typed.amount, { isWhole: typed.unit !== 'usd', isRequired: true })
  const wrongDays = () =>
    numberProblem(typed.days, { isRequired: true }) ?? (Number(typed.days) > 0 ? undefined : 'must be more than 0')
  const dialog = openDialog('Top up', (close) => {
    const asked = {
      ...{ onSubmit: () => void save(close), submit: 'Top up', busy },
      disabled: wrong() !== undefined || typed.because.trim() === '' || wrongDays() !== undefined,
    }
    return html`<div class="body">${failure === undefined ? nothing : problem(failure)}
      <p>The limits stay as they are. This adds to each of them until it ends.</p>
      ${form(
        asked,
        html`${field({
          ...{ label: 'Adds', name: 'amount', value: typed.amount, onInput: set('amount'), inputMode: 'decimal' },
          error: typed.amount === '' ? undefined : wrong(),
        })}
        ${field({ label: 'Of', name: 'unit', value: typed.unit, options: units, onInput: set('unit') })}
        ${budget.each === null ? nothing : field({ label: 'Only for the value', name: 'value', value: typed.value, onInput: set('value'), required: false, help: `Empty: for every ${budget.each.replace('label:', '')}` })}
        ${field({ label: 'Ends in days', name: 'days', value: typed.days, onInput: set('days'), inputMode: 'decimal', error: typed.days === '' ? undefined : wrongDays() })}
        ${field({ label: 'Because', name: 'because', value: typed.because, onInput: set('because'), charactersMax: 500, help: 'It is in the record of changes' })}`,
      )}</div>`
  })
  await dialog.closed
  return changed
}
