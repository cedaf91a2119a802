// The form that creates or changes a budget, and beside it what the budget would have refused, while somebody types.
/** @import { Budget, BudgetSimulation } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
/** @import { Limit, Override } from './budget-amounts.js' */
import {
  isComplete,
  limitRow,
  limitsOf,
  limitsText,
  newLimit,
  overrideRows,
  overridesOf,
  overridesText,
  windowsOf,
  withoutCostNote,
} from './budget-amounts.js'
import { segment, send } from './client.js'
import { confirm } from './dialog.js'
import { begin, createEdit, openEdit, saveEdit, trouble, unsavedMark } from './edit.js'
import { pairsProblem } from './fields.js'
import { debounce, field, form } from './form.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { numberOf, numberText } from './number.js'
import { at, callout, count, heading, loading, mayNot, problem, stored } from './parts.js'
import { go, href } from './router.js'
import { table } from './table.js'

const path = '/budgets'
const [simulateMilliseconds, valuesShown] = [400, 8]

/** What the form holds. `label`: of `each`, where that is a label. */
/** @typedef {{ name: string, each: string, label: string, limits: Limit[], overrides: Override[], workspaces: string, keys: string, labels: string, policies: string, models: string, mode: string, hold: string, unpriced: string, alerts: string, running: string }} BudgetValues */

const lists = /** @type {const} */ (['workspaces', 'keys', 'policies', 'models'])
const scopeFields = /** @type {const} */ ([...lists, 'labels'])

/** @param {Partial<Budget> | undefined} [budget] @returns {BudgetValues} */
function valuesOf(budget) {
  const { name = '', each = null, windows, overrides = null, mode = 'block', hold = 'expected' } = budget ?? {}
  const scope = /** @type {Record<string, any>} */ (budget?.applies_to ?? {})
  const isLabel = each?.startsWith('label:') === true
  return {
    name,
    each: isLabel ? 'label' : (each ?? ''),
    label: isLabel ? (each ?? '').slice('label:'.length) : '',
    limits: windows === undefined ? [newLimit()] : limitsOf(windows),
    overrides: overrideRows(overrides),
    ...{ workspaces: textOf(scope.workspaces), keys: textOf(scope.keys), policies: textOf(scope.policies) },
    models: textOf(scope.models),
    labels: Object.entries(scope.labels ?? {})
      .map((pair) => pair.join('='))
      .join('\n'),
    ...{ mode, hold, unpriced: budget?.unpriced ?? 'count', alerts: (budget?.alerts ?? [80, 100]).join(' ') },
    running: numberText(budget?.concurrent_requests),
  }
}

/** @param {string[] | undefined} list */
const textOf = (list) => (list ?? []).join('\n')
/** @param {string} text */
const linesOf = (text) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** @param {BudgetValues} values @returns {Record<string, unknown>} */
function bodyOf({ name, each, label, limits, overrides, labels, mode, hold, unpriced, alerts, running, ...more }) {
  const scope = Object.fromEntries(lists.map((kind) => [kind, linesOf(more[kind])]).filter(([, list]) => list?.length))
  const pairs = linesOf(labels).map((line) => line.split('='))
  if (pairs.length > 0)
    scope.labels = Object.fromEntries(pairs.map(([key, ...rest]) => [key?.trim(), rest.join('=').trim()]))
  return {
    name,
    applies_to: Object.keys(scope).length === 0 ? null : scope,
    each: each === '' ? null : each === 'label' ? `label:${label.trim()}` : each,
    windows: windowsOf(limits),
    overrides: overridesOf(overrides),
    ...{ mode, hold, unpriced },
    concurrent_requests: numberOf(running, { isWhole: true }),
    alerts: alerts
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((text) => (/^\d+$/.test(text) ? Number(text) : text)),
  }
}

const words = { limits: limitsText, overrides: overridesText }

/** @param {Page} page @param {string} [id] */
function createBudgetEdit(page, id, onChange = () => {}) {
  const self = id === undefined ? {} : { self: `${path}/${segment(id)}` }
  return createEdit(page, {
    ...{ what: 'budget', path, ...self, blank: valuesOf(), valuesOf, bodyOf, onChange, words },
    problemsIn: ({ labels }) => {
      const problem = pairsProblem(labels)
      return problem === undefined ? {} : { labels: problem }
    },
  })
}
/** @typedef {ReturnType<typeof createBudgetEdit>} Edited */

/** A limit of 0 lets nothing through. @param {BudgetValues} values */
function refusesAll(values) {
  const { mode, windows, concurrent_requests: running } = bodyOf(values)
  const limits = /** @type {object[]} */ (windows).flatMap((window) => Object.values(window))
  return mode === 'block' && (running === 0 || limits.includes(0))
}

const question = {
  title: 'Refuse every request?',
  body: html`<p>A limit is 0, so the budget refuses every request that it applies to, from now on.</p>`,
  action: 'Refuse them all',
  isDanger: true,
}

/** @param {Edited} edited @param {string} [id] */
async function save(edited, id) {
  if (refusesAll(edited.draft.values) && !(await confirm(question))) return
  await saveEdit(edited, (response) => {
    const changed = response === undefined ? 'Nothing was changed' : 'The budget was changed'
    notify('ok', id === undefined ? 'The budget is in force' : changed)
    go(['budgets', id ?? response.data.id])
  })
}

/** @param {Page} page @param {string} [id] none for a new budget */
export function budgetForm(page, id) {
  page.title(id === undefined ? 'New budget' : 'Edit budget')
  const simulation = createSimulation(page, () => {
    const { limits, overrides, ...values } = edited.draft.values
    // What somebody has just begun to type is left out.
    return bodyOf({ ...values, limits: limits.filter(isComplete), overrides: overrides.filter(isOverride) })
  })
  const edited = createBudgetEdit(page, id, simulation.refresh)
  const open = async () => {
    if (id === undefined) begin(edited, valuesOf())
    else await openEdit(edited)
    simulation.refresh()
  }
  page.poll(async () => {
    if (!edited.isReady) await open()
  }, 86_400)
  return () => {
    const { draft, busy, isReady } = edited
    if (!page.may('budgets.create')) return mayNot(page, 'budgets.create')
    if (!isReady) return loading()
    const asked = {
      onSubmit: () => void save(edited, id),
      submit: id === undefined ? 'Create budget' : 'Save',
      busy,
      disabled: draft.values.name.trim() === '' || !isWhole(draft.values),
      cancel: href(id === undefined ? ['budgets'] : ['budgets', id]),
      extra: unsavedMark(edited),
    }
    return html`<div class="columns">
      <section class="card">${trouble(edited, () => void save(edited, id), open)}${form(asked, fields(edited))}</section>
      <section class="card" aria-live="polite">${heading('The last 30 days with this budget')}${simulation.show()}</section>
    </div>`
  }
}

const nameCharactersMax = 128

/** Whether every limit has its amount. @param {BudgetValues} values */
function isWhole({ limits, overrides, running }) {
  return (limits.length > 0 || running.trim() !== '') && limits.every(isComplete) && overrides.every(isOverride)
}

/** @param {Override} row */
const isOverride = (row) => isComplete(row) && row.value.trim() !== ''

/** @param {Edited} edited @returns {Content} */
function fields(edited) {
  const { draft } = edited
  const { each, limits } = draft.values
  const isForEach = each !== ''
  const set = (/** @type {number} */ index) => (/** @type {Partial<Limit>} */ change) =>
    draft.set('limits')(limits.map((limit, at) => (at === index ? { ...limit, ...change } : limit)))
  const remove = (/** @type {number} */ index) => () => draft.set('limits')(limits.filter((_, at) => at !== index))
  return html`${draft.field('name', 'Name', { charactersMax: nameCharactersMax })}
    ${draft.field('each', 'Counts', {
      options: [
        ['', 'everything together'],
        ['key', 'each key'],
        ['policy', 'each policy'],
        ['attribution', 'each attribution'],
        ['label', 'each value of a label'],
      ],
    })}
    ${each === 'attribution' ? html`<p class="help">What the field “Attribute usage to” of a policy takes from the token, or a trusted front end from its header</p>` : nothing}
    ${each === 'label' ? draft.field('label', 'Label', { mono: true, help: 'Such as team. Keys have labels.' }) : nothing}
    ${limits.map((limit, index) => limitRow(`limit-${index}`, limit, set(index), remove(index)))}
    <div><button type="button" @click=${() => draft.set('limits')([...limits, newLimit()])}>Add a limit</button></div>
    ${isForEach ? overrideFields(edited) : nothing}
    ${draft.field('running', 'Requests at once', { required: false, inputMode: 'numeric', help: 'More wait for their turn. Empty: any number' })}
    <details ?open=${scopeFields.some((kind) => draft.values[kind] !== '')}>
      <summary>Only some requests</summary>
      <p class="help">All that is set must match. One per line.</p>
      ${draft.field('keys', 'Keys', { required: false, rows: 2 })} ${draft.field('policies', 'Policies', { required: false, rows: 2 })}
      ${draft.field('labels', 'Labels of keys', { required: false, rows: 2, mono: true, help: 'name=value' })}
      ${draft.field('models', 'Models', { required: false, rows: 2, mono: true, help: '* stands for any text' })}
      ${draft.field('workspaces', 'Workspaces', { required: false, rows: 2 })}
    </details>
    ${draft.field('mode', 'When it is spent', {
      options: [
        ['block', 'refuse requests'],
        ['warn', 'refuse nothing, only alert'],
      ],
    })}
    ${draft.field('alerts', 'Alerts at percent', { required: false, help: html`Such as 80 100. Sent to the <a href="#/webhooks">webhooks</a>.` })}
    ${draft.field('unpriced', 'Models without a price', {
      options: [
        ['count', 'count as free'],
        ['refuse', 'are refused'],
      ],
    })}
    ${draft.field('hold', 'Near the limit, running requests hold', {
      options: [
        ['expected', 'what they probably use'],
        ['worst', 'the most that they can use'],
        ['off', 'nothing'],
      ],
    })}`
}

/** @param {Edited} edited */
function overrideFields({ draft }) {
  const { overrides } = draft.values
  const put = (/** @type {number} */ index, /** @type {Partial<Override>} */ change) =>
    draft.set('overrides')(overrides.map((row, at) => (at === index ? { ...row, ...change } : row)))
  const rows = overrides.map((row, index) =>
    limitRow(
      `override-${index}`,
      row,
      (change) => put(index, change),
      () => draft.set('overrides')(overrides.filter((_, at) => at !== index)),
      field({
        ...{ label: 'For', name: `override-${index}-value`, value: row.value },
        onInput: (value) => put(index, { value }),
      }),
    ),
  )
  const add = () => draft.set('overrides')([...overrides, { value: '', ...newLimit() }])
  return html`${rows}<div><button type="button" @click=${add}>Other limits for one value</button></div>`
}

/** Asks a moment after somebody typed, and shows only the answer to the last question. @param {Page} page @param {() => Record<string, unknown>} body */
function createSimulation(page, body) {
  /** @type {BudgetSimulation | undefined} */
  let found
  /** @type {unknown} */
  let failure
  let asked = 0
  let isEmpty = true
  const ask = async () => {
    const turn = ++asked
    const { name: _name, ...fields } = body()
    isEmpty = Array.isArray(fields.windows) && fields.windows.length === 0
    if (isEmpty) return page.update()
    const sent = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
    try {
      const { data } = await send('POST', '/budget-simulations', sent)
      if (turn === asked) [found, failure] = [data, undefined]
    } catch (error) {
      if (turn === asked) [found, failure] = [undefined, error]
    }
    page.update()
  }
  return {
    refresh: debounce(ask, simulateMilliseconds),
    show: () => {
      if (isEmpty) return html`<p class="muted">Enter a limit to see what it would have refused.</p>`
      if (failure !== undefined) return problem(failure)
      return found === undefined
        ? loading()
        : html`${result(found)}${withoutCostNote(page, found.requests_without_cost)}`
    },
  }
}

/** @param {BudgetSimulation} found @returns {Content} */
function result({
  requests,
  refused,
  first_refused_at: first,
  values_refused: hit,
  value_count: all,
  data,
  estimated,
}) {
  if (requests === 0) return html`<p class="muted">No usage that this budget counts.</p>`
  const whose = all > 1 ? html`, of ${count(hit)} of ${count(all)} values` : nothing
  return html`${callout(
    refused === 0 ? 'ok' : 'warn',
    refused === 0
      ? html`None of ${count(requests)} requests would have been refused.`
      : html`${estimated ? 'About ' : ''}${count(refused)} of ${count(requests)} requests would have been refused${whose}, first at ${at(first)}.`,
  )}
  ${table({
    label: 'By value',
    columns: [
      {
        title: 'Value',
        isHeader: true,
        cell: ({ value, name }) => (value === '' ? html`<span class="muted">all</span>` : stored(name ?? value, 100)),
      },
      { title: 'Requests', align: 'end', cell: ({ requests: own }) => count(own) },
      { title: 'Refused', align: 'end', cell: ({ refused: own }) => count(own) },
      { title: 'Most used', align: 'end', cell: ({ share }) => `${count(Math.round(share * 100))}%` },
    ],
    rows: data.slice(0, valuesShown),
    key: ({ value }) => value,
  })}`
}
