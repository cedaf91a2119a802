// A policy while it is edited: what was typed, what the server says about it (types, linter, stored tests, what would
// change), and saving it over the version that was opened.
/** @import { Backtest, Finding, Issuer, Page, Policy } from '../types.ts' */
import { asProblem, get, segment, send } from './client.js'
import { forgetFindings, isBlocking } from './findings.js'
import { createDraft, debounce } from './form.js'
import { notify } from './notice.js'
import { json } from './parts.js'
import { guessPlatform, platforms } from './platforms.js'
import { go } from './router.js'

const path = '/workload-identity/policies'
/** Longer lists are typed instead of chosen. */
export const listMax = 100

/** What the fields hold; lists and tests as text. @param {Policy | undefined} policy */
export function valuesOf(policy) {
  return {
    name: policy?.name ?? '',
    issuer: policy?.issuer_id ?? '',
    key: policy?.key_id ?? '',
    audience: policy?.audience ?? location.origin,
    subject: policy?.subject ?? '',
    condition: policy?.condition ?? '',
    required_scope: policy?.required_scope ?? '',
    required_token_type: policy?.required_token_type ?? '',
    allowed_models: (policy?.allowed_models ?? []).join('\n'),
    allowed_presets: (policy?.allowed_presets ?? []).join('\n'),
    max_lifetime_seconds: String(policy?.max_lifetime_seconds ?? 900),
    replay_protection: policy?.replay_protection ?? false,
    lint_exceptions: policy?.lint_exceptions ?? [],
    tests: policy?.tests ? json(policy.tests) : '',
  }
}

const lists = ['allowed_models', 'allowed_presets']

/** What is sent: null removes a value. @param {ReturnType<typeof valuesOf>} values */
export function bodyOf(values) {
  const body = Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const lines = String(value)
        .split('\n')
        .map((line) => line.trim())
        .filter(Boolean)
      return [name, value === '' || lines.length === 0 ? null : lists.includes(name) ? lines : value]
    }),
  )
  const { lint_exceptions: exceptions, tests, max_lifetime_seconds: seconds } = values
  return {
    ...body,
    max_lifetime_seconds: Number(seconds),
    lint_exceptions: exceptions.length === 0 ? null : exceptions,
    tests: tests.trim() === '' ? null : parse(tests),
  }
}

/** Text that is not JSON stays text, which the server refuses. @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
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
  const edited = {
    page,
    id,
    self: id === undefined ? path : `${path}/${segment(id)}`,
    method: id === undefined ? 'POST' : 'PATCH',
    /** @type {{ issuers: Issuer[], keys: { id: string, name: string }[] } | undefined} */
    choices: undefined,
    /** @type {string | undefined} */
    etag: undefined,
    draft: createDraft(page, valuesOf(undefined), (name) => {
      if (name === 'issuer') choosePlatform(edited)
      checkSoon()
    }),
    platform: 'other',
    /** @type {Record<string, string>} */
    answers: {},
    /** @type {Verdict} */
    verdict: {},
    /** @type {Policy | undefined} the version of another admin, who was first */
    theirs: undefined,
    busy: false,
    turn: 0,
  }
  const checkSoon = debounce(() => check(edited))
  return edited
}

/** Reads what can be chosen, and the policy. @param {PolicyDraft} edited */
export async function openDraft(edited) {
  const [issuers, keys, opened] = await Promise.all([
    get('/workload-identity/issuers', { limit: listMax }),
    get('/keys', { kind: 'inference', limit: listMax }),
    edited.id === undefined ? undefined : get(edited.self),
  ])
  edited.etag = opened?.etag
  Object.assign(edited.draft.values, valuesOf(opened?.data))
  if (opened === undefined)
    Object.assign(edited.draft.values, {
      issuer: edited.page.query.issuer ?? '',
      key: edited.page.query.key ?? '',
    })
  edited.choices = { issuers: issuers.data, keys: keys.data }
  choosePlatform(edited)
  void check(edited)
}

/** @param {PolicyDraft} edited */
function choosePlatform(edited) {
  const { choices, draft, id } = edited
  edited.platform = guessPlatform(
    choices?.issuers.find((issuer) => issuer.id === draft.values.issuer)?.issuer_url ?? '',
  )
  if (id === undefined && edited.platform === 'kubernetes') draft.values.audience = 'latchkey'
}

/** Writes subject and condition from the answers. @param {PolicyDraft} edited @param {Record<string, string>} answers */
export function answer(edited, answers) {
  Object.assign(edited.answers, answers)
  const { subject, condition } = platforms[edited.platform]?.write(edited.answers) ?? { subject: '', condition: '' }
  edited.draft.values.condition = condition
  edited.draft.set('subject')(subject)
}

/** @param {PolicyDraft} edited */
export const isComplete = ({ draft: { values } }) =>
  [values.name, values.issuer, values.key, values.audience, values.subject || values.condition].every(
    (value) => value.trim() !== '',
  )

/** @param {PolicyDraft} edited */
export const isRefused = ({ verdict: { findings, conditionError, error } }) =>
  findings?.some(isBlocking) === true || conditionError !== undefined || error !== undefined

/** What a past exchange is judged by. */
const judged = ['audience', 'subject', 'condition', 'required_scope', 'required_token_type', 'replay_protection']

/**
 * What a change of a saved policy would do; of a new one only whether it could be saved.
 * @param {PolicyDraft} edited @param {object} body @param {Verdict} verdict
 */
async function tryOut({ id, method, self }, body, verdict) {
  verdict.difference = (await send(method, self, { ...body, dry_run: true })).data.difference
  if (id === undefined) return
  const rules = Object.fromEntries(Object.entries(body).filter(([name]) => judged.includes(name)))
  verdict.backtest = (await send('POST', `${self}/backtest`, rules)).data
}

/** The linter first: its findings have witnesses, where a dry run has a sentence. @param {PolicyDraft} edited */
async function check(edited) {
  const turn = ++edited.turn
  const { values } = edited.draft
  /** @type {Verdict} */
  const verdict = {}
  edited.verdict = { ...edited.verdict, isChecking: true }
  edited.page.update()
  if (values.issuer !== '' && values.audience !== '' && (values.subject || values.condition) !== '')
    try {
      const body = bodyOf(values)
      const draft = { ...body, name: undefined, key: undefined }
      verdict.findings = (await send('POST', `${path}/lint`, { drafts: [draft] })).data[0].findings
      if (isComplete(edited) && !isRefused({ ...edited, verdict })) await tryOut(edited, body, verdict)
    } catch (error) {
      const [, rest] = /^The condition cannot be \w+: ([\s\S]+)/.exec(asProblem(error).message) ?? []
      if (rest === undefined) verdict.error = error
      else verdict.conditionError = rest
    }
  if (turn !== edited.turn) return
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
export async function save(edited) {
  edited.busy = true
  try {
    const { data } = await send(edited.method, edited.self, bodyOf(edited.draft.values), { etag: edited.etag })
    notify('ok', edited.id === undefined ? 'The policy was created' : 'The policy was saved')
    go(['policies', data.id])
  } catch (error) {
    if (asProblem(error).status === 412) {
      const { data, etag } = await get(edited.self)
      Object.assign(edited, { theirs: data, etag })
    } else edited.verdict = { ...edited.verdict, error }
  } finally {
    edited.busy = false
  }
}

/** Replaces what was typed by the version of the other admin. @param {PolicyDraft} edited */
export function takeTheirs(edited) {
  Object.assign(edited.draft.values, valuesOf(edited.theirs))
  edited.theirs = undefined
  void check(edited)
}
