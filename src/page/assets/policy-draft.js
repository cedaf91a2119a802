// A policy while it is edited: what was typed, what the server says about it (types, linter, stored tests, what would
// change), and saving it over the version that was opened.
/** @import { Backtest, Finding, Issuer, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Page } from '../types.ts' */
/** @import { PolicyValues } from './policy-fields.js' */
import { asProblem, get, segment, send } from './client.js'
import { begin, createEdit, saveEdit } from './edit.js'
import { numbersIn } from './fields.js'
import { forgetFindings, isBlocking } from './findings.js'
import { debounce } from './form.js'
import { notify } from './notice.js'
import { guessPlatform, platforms } from './platforms.js'
import { heldOf, policyFieldList, policyFields, sentOf } from './policy-fields.js'
import { go } from './router.js'

const path = '/workload-identity/policies'
/** What a past exchange is judged by. @type {ReadonlySet<string>} */
const judged = new Set(policyFieldList.flatMap(([name, { isJudged }]) => (isJudged ? [name] : [])))
/** Longer lists are typed instead of chosen. */
export const listMax = 100

/** What the form holds, and what the picker asks, by platform. @typedef {PolicyValues & { platform: string, answers: Record<string, Record<string, string>> }} Values */

/** @param {Policy | undefined} policy @returns {Values} */
export function valuesOf(policy) {
  const held = heldOf(policy)
  return { ...held, audience: policy?.audience ?? location.origin, platform: 'other', answers: {} }
}

/**
 * @typedef {object} Verdict
 * @property {Finding[]} [findings]
 * @property {{ gains?: object, loses?: object }} [difference] a token that passes only after, and one only before
 * @property {Backtest} [backtest] what it decides about past exchanges
 * @property {string} [conditionError]
 * @property {unknown} [error]
 * @property {boolean} [isChecking]
 */

/** @typedef {ReturnType<typeof createPolicyDraft>} PolicyDraft */

/** @param {Page} page @param {string} [id] none for a new policy */
export function createPolicyDraft(page, id) {
  const checkSoon = debounce(() => check(edited))
  const edit = createEdit(page, {
    what: 'policy',
    path,
    ...(id === undefined ? {} : { self: `${path}/${segment(id)}` }),
    blank: valuesOf(undefined),
    valuesOf,
    bodyOf: sentOf,
    numbers: numbersIn(policyFields, id === undefined),
    onChange: (name) => {
      if (name === 'issuer') choosePlatform(edited.draft.values, edited)
      checkSoon()
    },
  })
  const edited = Object.assign(edit, {
    id,
    method: id === undefined ? 'POST' : 'PATCH',
    /** @type {{ issuers: Issuer[], keys: { id: string, name: string }[] } | undefined} */
    choices: undefined,
    /** @type {Rules | undefined} what the picker replaced */
    replaced: undefined,
    /** @type {Verdict} */
    verdict: {},
    /** Ends the checks of what was typed before. */
    checking: new AbortController(),
  })
  page.onClose(() => edited.checking.abort())
  return edited
}

/** Reads what can be chosen, and the policy. @param {PolicyDraft} edited */
export async function openDraft(edited) {
  const [issuers, keys, opened] = await Promise.all([
    get('/workload-identity/issuers', { limit: listMax }),
    get('/keys', { kind: 'inference', limit: listMax }),
    edited.id === undefined ? undefined : get(edited.self),
  ])
  edited.choices = { issuers: issuers.data, keys: keys.data }
  const values = valuesOf(opened?.data)
  if (opened === undefined) {
    const { issuer = '', key = '' } = edited.page.query
    Object.assign(values, { issuer, key })
  }
  choosePlatform(values, edited)
  begin(edited, values, opened?.etag)
  void check(edited)
}

/** @param {Values} values @param {Pick<PolicyDraft, 'choices' | 'id'>} edited */
function choosePlatform(values, { choices, id }) {
  const url = choices?.issuers.find((issuer) => issuer.id === values.issuer)?.issuer_url
  values.platform = guessPlatform(url ?? '')
  const [here, cluster] = [location.origin, 'latchkey']
  // An audience that somebody typed stays.
  if (id === undefined && [here, cluster].includes(values.audience))
    values.audience = values.platform === 'kubernetes' ? cluster : here
}

/** @typedef {{ subject: string, condition: string }} Rules */

/** What the answers say. @param {Values} values @returns {Rules} */
function writtenBy({ platform, answers }) {
  return platforms[platform]?.write(answers[platform] ?? {}) ?? { subject: '', condition: '' }
}

/** @param {Rules} one @param {Rules} other */
const isSameRules = (one, other) => one.subject === other.subject && one.condition === other.condition

/** Whether the picker may write: nobody wrote subject or condition by hand. @param {Values} values */
function isUntouched(values) {
  return isSameRules(values, { subject: '', condition: '' }) || isSameRules(values, writtenBy(values))
}

/** Writes subject and condition from the answers, unless somebody wrote them. @param {PolicyDraft} edited @param {Partial<Values>} asked */
function pick(edited, asked) {
  const { values, set } = edited.draft
  const mayWrite = isUntouched(values)
  Object.assign(values, asked)
  if (mayWrite) Object.assign(values, writtenBy(values))
  edited.replaced = undefined
  set('platform')(values.platform)
}

/** @param {PolicyDraft} edited @param {string} platform */
export const pickPlatform = (edited, platform) => pick(edited, { platform })

/** @param {PolicyDraft} edited @param {Record<string, string>} more */
export function answer(edited, more) {
  const { platform, answers } = edited.draft.values
  pick(edited, { answers: { ...answers, [platform]: { ...answers[platform], ...more } } })
}

/** What the picker would write over rules that somebody wrote; undefined where it has nothing to offer. @param {PolicyDraft} edited @returns {Rules | undefined} */
export function offered({ draft: { values } }) {
  const rules = writtenBy(values)
  const isEmpty = rules.subject === '' && rules.condition === ''
  return isEmpty || isSameRules(values, rules) ? undefined : rules
}

/** @param {PolicyDraft} edited @param {Rules} rules @param {Rules} [replaced] what can be undone */
export function useRules(edited, rules, replaced) {
  const { values, set } = edited.draft
  values.condition = rules.condition
  edited.replaced = replaced
  set('subject')(rules.subject)
}

/** @param {PolicyDraft} edited */
export const isComplete = ({ draft: { values } }) =>
  [values.name, values.issuer, values.key, values.audience, values.subject || values.condition].every(
    (value) => value.trim() !== '',
  )

/** @param {PolicyDraft} edited */
export const isRefused = ({ verdict: { findings, conditionError, error } }) =>
  findings?.some(isBlocking) === true || conditionError !== undefined || error !== undefined

/**
 * What a change of a saved policy would do; of a new one only whether it could be saved.
 * @param {PolicyDraft} edited @param {object} body @param {Verdict} verdict @param {AbortSignal} signal
 */
async function tryOut({ id, method, self }, body, verdict, signal) {
  verdict.difference = (await send(method, self, { ...body, dry_run: true }, { signal })).data.difference
  if (id === undefined) return
  const rules = Object.fromEntries(Object.entries(body).filter(([name]) => judged.has(name)))
  verdict.backtest = (await send('POST', `${self}/backtest`, rules, { signal })).data
}

/** The linter first: its findings have witnesses, where a dry run has a sentence. @param {PolicyDraft} edited */
async function check(edited) {
  edited.checking.abort()
  edited.checking = new AbortController()
  const { signal } = edited.checking
  const { values } = edited.draft
  /** @type {Verdict} */
  const verdict = {}
  edited.verdict = { ...edited.verdict, isChecking: true }
  edited.page.update()
  if (values.issuer !== '' && values.audience !== '' && (values.subject || values.condition) !== '')
    try {
      const body = sentOf(values)
      const draft = { ...body, name: undefined, key: undefined }
      verdict.findings = (await send('POST', `${path}/lint`, { drafts: [draft] }, { signal })).data[0].findings
      if (isComplete(edited) && !isRefused({ ...edited, verdict })) await tryOut(edited, body, verdict, signal)
    } catch (error) {
      const [, rest] = /^The condition cannot be \w+: ([\s\S]+)/.exec(asProblem(error).message) ?? []
      if (rest === undefined) verdict.error = error
      else verdict.conditionError = rest
    }
  if (signal.aborted) return
  edited.verdict = verdict
  edited.page.update()
}

/** Stores whether strangers get tokens of the issuer, and checks the policy again. @param {PolicyDraft} edited @param {boolean} shared */
export async function answerIssuer(edited, shared) {
  await send('PATCH', `/workload-identity/issuers/${segment(edited.draft.values.issuer)}`, { shared })
  forgetFindings()
  await check(edited)
}

/** @param {PolicyDraft} edited */
export const save = (edited) =>
  saveEdit(edited, (response) => {
    const { id } = edited
    notify(
      'ok',
      id === undefined
        ? 'The policy was created'
        : response === undefined
          ? 'Nothing was changed'
          : 'The policy was saved',
    )
    go(['policies', response?.data.id ?? id])
  })
