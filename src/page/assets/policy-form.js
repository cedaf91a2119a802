// The editor of policies: its fields, a picker that writes subject and condition for a platform, and beside them what the
// server says while somebody types.
/** @import { Backtest, Finding } from '../../admin/transport/response-types.ts' */
/** @import { Page } from '../types.ts' */
/** @import { PolicyField } from './policy-fields.js' */
import { createCodeField } from './code-field.js'
import { control } from './control.js'
import { trouble, unsavedMark } from './edit.js'
import { findingList } from './findings.js'
import { choice, field, form } from './form.js'
import { html, nothing } from './lit-html.js'
import { inline } from './markdown.js'
import { at, callout, code, count, facts, json, loading, mayNot, mono, problem } from './parts.js'
import { planNotice } from './plan.js'
import { platforms } from './platforms.js'
import {
  answer,
  answerIssuer,
  createPolicyDraft,
  isComplete,
  isRefused,
  offered,
  openDraft,
  pickPlatform,
  save,
  useRules,
} from './policy-draft.js'
import { policyFieldList } from './policy-fields.js'
import { href } from './router.js'

/** @typedef {ReturnType<typeof createPolicyDraft>} PolicyDraft */

/** @param {Page} page @param {string} [id] none for a new policy */
export function policyForm(page, id) {
  const edited = createPolicyDraft(page, id)
  page.title(id === undefined ? 'New policy' : 'Edit policy')
  page.poll(async () => {
    if (!edited.isReady) await openDraft(edited)
  }, 86_400)
  const conditionField = createCodeField(page, () => edited.claims)
  return () => {
    if (!page.may('policies.create')) return mayNot(page, 'policies.create')
    if (!edited.isReady) return loading()
    const onSubmit = () => void save(edited)
    return html`${planNotice(page)}<div class="columns">
      <section class="card">${trouble(edited, onSubmit, () => openDraft(edited))}${form(
        {
          onSubmit,
          submit: id === undefined ? 'Create policy' : 'Save',
          busy: edited.busy,
          disabled: !isComplete(edited) || isRefused(edited),
          cancel: href(id === undefined ? ['policies'] : ['policies', id]),
          extra: unsavedMark(edited),
        },
        html`${who(edited)}${picker(edited)}${rules(edited, conditionField)}${more(edited)}`,
      )}</section>
      <aside class="stack" aria-label="Checks">${checks(edited)}</aside>
    </div>`
  }
}

/** @param {PolicyDraft} edited */
function who(edited) {
  const { draft, issuers, keys, unknownIssuer } = edited
  const { issuer, key, platform } = draft.values
  return html`<h2>Who</h2>
  ${unknownIssuer === undefined ? nothing : callout('warn', html`No issuer has the URL ${mono(unknownIssuer, 600)} of this token: <a href=${href(['issuers', 'new'], { url: unknownIssuer })}>add it</a> first. What you typed stays.`)}
  <div class="fields">
    ${draft.field('name', 'Name')}
    ${issuers.field({ name: 'issuer', label: 'Issuer', value: issuer, onInput: draft.set('issuer'), error: draft.errors.issuer, help: html`Who signs the tokens. <a href=${href(['issuers', 'new'], { platform: platform === 'other' ? undefined : platform })} target="_blank">Add one</a>` })}
    ${keys.field({ name: 'key', label: 'Acts as key', value: key, onInput: draft.set('key'), error: draft.errors.key, help: html`Its budget, rates and models apply. <a href="#/keys/new" target="_blank">Create a key</a>` })}
    ${draft.field('audience', 'Audience', { mono: true, help: 'The workload requests its token for exactly this audience' })}
    ${policyFieldList.filter(([, { place }]) => place === 'who').map((each) => control(edited, each))}
  </div>`
}

/** @type {Record<string, string>} */
const valueLabels = { branch: 'Branch', tag: 'Tag', environment: 'Environment' }

/** @param {PolicyDraft} edited */
function picker(edited) {
  const { platform, answers } = edited.draft.values
  const { questions = [], url, host } = platforms[platform] ?? {}
  const known = answers[platform] ?? {}
  const where = url === undefined ? host && `https://${host}` : inline(url)
  const add = href(['issuers', 'new'], { platform, policy: edited.id ?? 'new' })
  return html`<h2>Which tokens</h2>${choice({
    label: 'Platform',
    name: 'platform',
    value: platform,
    options: Object.entries(platforms).map(([key, { label }]) => [key, label]),
    onInput: (chosen) => pickPlatform(edited, chosen),
  })}
  ${where === undefined ? nothing : html`<p class="muted small">Its issuer URL: ${where}${edited.draft.values.issuer === '' ? html`. <a href=${add} @click=${edited.goOn}>Add this issuer</a>` : nothing}</p>`}
  <div class="fields" ?hidden=${questions.length === 0}>${questions.map(({ name, help, ...question }) =>
    field({
      ...question,
      label: name === 'value' ? (valueLabels[known.kind ?? 'branch'] ?? question.label) : question.label,
      name: `answer-${name}`,
      value: known[name] ?? '',
      onInput: (value) => answer(edited, { [name]: value }),
      help: help && inline(help),
    }),
  )}</div>
  ${offer(edited)}`
}

/** Rules that somebody wrote are replaced only when asked, and come back. @param {PolicyDraft} edited */
function offer(edited) {
  const { replaced, draft } = edited
  const { subject, condition } = draft.values
  const button = (/** @type {string} */ text, /** @type {() => void} */ act) =>
    html`<div><button type="button" @click=${act}>${text}</button></div>`
  if (replaced !== undefined)
    return callout(
      'info',
      html`<div class="stack"><p>Subject and condition were replaced.</p>${button('Undo', () => useRules(edited, replaced))}</div>`,
    )
  const rules = offered(edited)
  if (rules === undefined) return nothing
  return callout(
    'info',
    html`<div class="stack"><p>Subject and condition below were written by hand and stay as they are. From these answers they would be:</p>
      ${facts([
        ['Subject', rules.subject === '' ? 'none' : mono(rules.subject, 600)],
        ['Condition', rules.condition === '' ? 'none' : mono(rules.condition, 2_000)],
      ])}
      ${button('Replace subject and condition', () => useRules(edited, rules, { subject, condition }))}</div>`,
  )
}

/** @param {PolicyDraft} edited @param {ReturnType<typeof createCodeField>} conditionField */
function rules({ draft, verdict }, conditionField) {
  return html`${draft.field('subject', 'Subject', { mono: true, help: html`The token's <code>sub</code> must equal it. Set a subject, a condition or both.` })}
    ${conditionField({
      name: 'condition',
      label: 'Condition',
      value: draft.values.condition,
      onInput: draft.set('condition'),
      charactersMax: 2000,
      error: verdict.conditionError ?? draft.errors.condition,
      help: html`A CEL expression over <code>subject</code>, <code>audience</code>, <code>scopes</code>, <code>token_type</code> and <code>claims</code>; two letters show those of this issuer. <a href="#/manual/policies">How to write one</a>`,
    })}`
}

/** @param {PolicyDraft} edited */
function more(edited) {
  const isSmall = (/** @type {PolicyField} */ { form }) => ['text', 'lines', 'number'].includes(form)
  const fields = policyFieldList.filter(([, { place }]) => place === 'more')
  const [small = [], large = []] = [
    fields.filter(([, field]) => isSmall(field)),
    fields.filter(([, field]) => !isSmall(field)),
  ]
  return html`<details><summary>More: attribution of usage, claim checks, models, lifetime, tests</summary><div class="form">
    <div class="fields">${small.map((each) => control(edited, each))}</div>
    ${large.map((each) => control(edited, each))}
  </div></details>`
}

/** @param {PolicyDraft} edited */
function checks(edited) {
  const { draft } = edited
  const { findings, difference, backtest, error, isChecking } = edited.verdict
  const exceptions = draft.values.lint_exceptions
  const allow = (/** @type {Finding} */ { rule, level }) =>
    rule === 'shared-unknown'
      ? issuerQuestion(edited)
      : level === 'blocking'
        ? field({
            label: 'If this is intended, say why',
            name: `allow-${rule}`,
            value: exceptions.find((each) => each.rule === rule)?.because ?? '',
            onInput: (because) =>
              draft.set('lint_exceptions')([
                ...exceptions.filter((each) => each.rule !== rule),
                ...(because.trim() === '' ? [] : [{ rule, because }]),
              ]),
            required: false,
          })
        : nothing
  const passes = (/** @type {string} */ title, /** @type {object | undefined} */ claims) =>
    claims === undefined ? nothing : html`<div class="card"><h3>${title}</h3>${code(json(claims), 'claims')}</div>`
  return html`<h2>Checks <span class="muted" role="status">${isChecking ? 'checking…' : ''}</span></h2>
    ${error === undefined ? nothing : problem(error)}
    ${findings === undefined ? html`<p class="muted">While you type, the server checks who could pass and whether the tests of the policy hold.</p>` : html`<div class="card">${findingList(findings, allow)}</div>`}
    ${passes('A token that passes only after this change', difference?.gains)} ${passes('A token that passes only before it', difference?.loses)}
    ${backtest === undefined ? nothing : pastExchanges(backtest)}`
}

/** @param {PolicyDraft} edited */
function issuerQuestion(edited) {
  const button = (/** @type {string} */ text, /** @type {boolean} */ shared) =>
    html`<button type="button" @click=${() => edited.page.run(() => answerIssuer(edited, shared))}>${text}</button>`
  return html`<div class="actions">Can strangers get its tokens? ${button('No, only my organization', false)} ${button('Yes, others too', true)}</div>`
}

/** @param {Backtest} backtest */
function pastExchanges({ since, exchanges, accepted_before, accepted_after, gained, lost, not_judged, examples }) {
  /** @type {[string, number, { request_id: string, subject: string } | undefined][]} */
  const changed = [
    ['accepted only after this change', gained, examples.gained],
    ['accepted only before it', lost, examples.lost],
    ['not judged: too little was recorded', not_judged, examples.not_judged],
  ]
  return html`<div class="card"><h3>Past exchanges</h3>
    ${facts([
      ['Since', at(since)],
      ['Exchanges of the issuer', `${count(exchanges)}, under any of its policies`],
      ['Accepted by this policy', `${count(accepted_before)} as saved, ${count(accepted_after)} as edited`],
    ])}
    ${changed.map(([what, number, example]) =>
      number === 0
        ? nothing
        : html`<p><strong>${number}</strong> ${what}${example ? html`, such as <a href=${href(['exchanges', example.request_id])}>${mono(example.subject, 120)}</a>` : nothing}</p>`,
    )}
  </div>`
}
