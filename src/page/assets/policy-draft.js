// A policy while it is edited: what was typed, what the server says about it (types, linter, stored tests, what would
// change), and saving it over the version that was opened.
/** @import { Backtest, Finding, Issuer, Key, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Page } from '../types.ts' */
/** @import { PolicyValues } from './policy-fields.js' */
import { asProblem, get, segment, send } from './client.js'
import { createCombobox } from './combobox.js'
import { begin, createEdit, saveEdit } from './edit.js'
import { numbersIn } from './fields.js'
import { forgetFindings, isBlocking } from './findings.js'
import { debounce } from './form.js'
import { policyFrom, takeSource } from './from-token.js'
import { notify } from './notice.js'
import { claimText, guessPlatform, platforms, rulesOf } from './platforms.js'
import { heldOf, policyFieldList, policyFields, sentOf } from './policy-fields.js'
import { go } from './router.js'

const path = '/workload-identity/policies'
const issuersPath = '/workload-identity/issuers'
/** What a past exchange is judged by. @type {ReadonlySet<string>} */
const judged = new Set(policyFieldList.flatMap(([name, { isJudged }]) => (isJudged ? [name] : [])))

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
    own: ['platform', 'answers'],
    bodyOf: sentOf,
    numbers: numbersIn(policyFields, id === undefined),
    onChange: (name) => {
      if (name === 'issuer') {
        edited.unknownIssuer = undefined
        choosePlatform(edited.draft.values, edited)
        void learnClaims(edited)
      }
      checkSoon()
    },
  })
  const edited = Object.assign(edit, {
    id,
    method: id === undefined ? 'POST' : 'PATCH',
    issuers: issuerBox(page),
    keys: keyBox(page),
    /** The issuer URL of a token that no issuer has. @type {string | undefined} */
    unknownIssuer: undefined,
    /** The issuer that came with the card of a platform, and goes with it. */
    issuerOfCard: '',
    /** Whether somebody chose the platform. */
    isPlatformChosen: false,
    /** What tokens of the issuer have, for the completion of a condition. @type {{ text: string, about?: string }[]} */
    claims: [],
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

/** @param {Issuer} issuer */
const issuerItem = ({ id, name, issuer_url }) => ({ id, name, hint: issuer_url })
/** @param {Key} key */
const keyItem = ({ id, name, role, label }) => ({
  id,
  name,
  hint: role === null ? label : `${role}: people sign in as it`,
})

/** @param {Page} page */
const issuerBox = (page) =>
  createCombobox(page, {
    find: async (text) => (await get(issuersPath, { contains: text, limit: 20 })).data.map(issuerItem),
    read: async (id) => issuerItem((await get(`${issuersPath}/${segment(id)}`)).data),
  })

/** @param {Page} page */
const keyBox = (page) =>
  createCombobox(page, {
    find: async (text) => (await get('/keys', { contains: text, limit: 20 })).data.map(keyItem),
    read: async (id) => keyItem((await get(`/keys/${segment(id)}`)).data),
  })

/** Reads the policy, or what a new one begins with. @param {PolicyDraft} edited */
export async function openDraft(edited) {
  const opened = edited.id === undefined ? undefined : await get(edited.self)
  const values = valuesOf(opened?.data)
  if (opened === undefined) await seed(edited, values)
  else {
    const { issuer_id: id, issuer_name: name, issuer_url: hint, key_id, key_name } = /** @type {Policy} */ (opened.data)
    edited.issuers.learn([{ id, name, hint }])
    edited.keys.learn([{ id: key_id, name: key_name }])
    edited.page.within(values.name)
  }
  if (values.platform === 'other') choosePlatform(values, edited)
  begin(edited, values, opened?.etag)
  await takeIssuer(edited)
  void learnClaims(edited)
  void check(edited)
}

/** An issuer that was added for a draft that has none. @param {PolicyDraft} edited */
async function takeIssuer(edited) {
  const { issuer = '' } = edited.page.query
  if (issuer === '' || edited.draft.values.issuer !== '') return
  edited.issuers.learn([issuerItem((await get(`${issuersPath}/${segment(issuer)}`)).data)])
  edited.draft.set('issuer')(issuer)
}

/** What the address names, or a token that somebody pasted. @param {PolicyDraft} edited @param {Values} values */
async function seed(edited, values) {
  const { issuer = '', key = '' } = edited.page.query
  const item = issuer === '' ? undefined : issuerItem((await get(`${issuersPath}/${segment(issuer)}`)).data)
  if (item !== undefined) edited.issuers.learn([item])
  Object.assign(values, { issuer: item?.id ?? '', key })
  const source = takeSource()
  if (source === undefined) return
  const found = await issuerOf(source.issuerUrl)
  if (found === undefined) edited.unknownIssuer = source.issuerUrl
  else edited.issuers.learn([issuerItem(found)])
  Object.assign(values, policyFrom(source), { issuer: found?.id ?? '' })
}

const issuersAtOnce = 100

/** The issuer with this URL, among all. @param {string} url @returns {Promise<Issuer | undefined>} */
async function issuerOf(url) {
  for (let offset = 0, total = 1; offset < total; offset += issuersAtOnce) {
    const { data, total_count } = await get(issuersPath, { offset, limit: issuersAtOnce })
    const found = /** @type {Issuer[]} */ (data).find(({ issuer_url }) => issuer_url === url)
    if (found !== undefined) return found
    total = total_count
  }
  return undefined
}

/** Reads which claims the latest tokens of the issuer had. @param {PolicyDraft} edited */
async function learnClaims(edited) {
  const { issuer, platform } = edited.draft.values
  const asked = platforms[platform]?.questions.flatMap(({ claim = [], label }) => [
    { text: claimText(claim), about: label },
  ])
  edited.claims = [...variables, ...(asked ?? []).filter(({ text }) => text !== 'claims')]
  if (issuer === '') return
  const { data } = await get('/workload-identity/audit', { issuer, limit: exchangesRead }).catch(() => ({ data: [] }))
  const read = data.map((/** @type {{ request_id: string }} */ { request_id: id }) =>
    get(`/workload-identity/audit/${segment(id)}`).catch(() => undefined),
  )
  const known = new Map(edited.claims.map((word) => [word.text, word]))
  for (const each of await Promise.all(read))
    for (const [name, value] of Object.entries(each?.data.recorded_claims?.claims ?? {}))
      if (edited.draft.values.issuer === issuer)
        known.set(claimText([name]), { text: claimText([name]), about: exampleOf(value) })
  edited.claims = [...known.values()]
}
const exchangesRead = 3

/** @param {unknown} value */
const exampleOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 60)

/** What a condition may use beside claims. */
const variables = [
  { text: 'subject', about: 'the claim sub' },
  { text: 'audience', about: 'a list: the claim aud' },
  { text: 'scopes', about: 'a list of texts' },
  { text: 'token_type', about: 'a text' },
  { text: 'startsWith(', about: 'text.startsWith("…")' },
  { text: 'endsWith(', about: 'text.endsWith("…")' },
  { text: 'contains(', about: 'text.contains("…")' },
  { text: 'exists(', about: 'list.exists(each, each == "…")' },
]

/** @param {Values} values @param {Pick<PolicyDraft, 'issuers' | 'id' | 'isPlatformChosen'>} edited */
function choosePlatform(values, { issuers, id, isPlatformChosen }) {
  const guessed = guessPlatform(issuers.chosen(values.issuer)?.hint ?? '')
  // An issuer of an unknown platform says nothing against the one that somebody chose.
  if (guessed !== 'other' || !isPlatformChosen) values.platform = guessed
  const usual = [location.origin, ...Object.values(platforms).map(({ audience }) => audience)]
  // An audience that somebody typed stays.
  if (id === undefined && usual.includes(values.audience))
    values.audience = platforms[values.platform]?.audience ?? location.origin
}

/** @typedef {{ subject: string, condition: string }} Rules */

/** What the answers say. @param {Values} values @returns {Rules} */
function writtenBy({ platform, answers }) {
  return rulesOf(platform, answers[platform] ?? {})
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
export function pickPlatform(edited, platform) {
  edited.isPlatformChosen = true
  const { issuer } = edited.draft.values
  pick(edited, { platform, issuer: issuer === edited.issuerOfCard ? '' : issuer })
  void edited.page.run(() => takeIssuerOf(edited, platform))
}

/** The issuer of a platform that has one URL for all, where nobody has chosen another one. @param {PolicyDraft} edited @param {string} platform */
async function takeIssuerOf(edited, platform) {
  const { host } = platforms[platform] ?? {}
  const isFree = () => edited.draft.values.issuer === '' && edited.draft.values.platform === platform
  if (host === undefined || !isFree()) return
  const found = await issuerOf(`https://${host}`)
  if (found === undefined || !isFree()) return
  edited.issuers.learn([issuerItem(found)])
  edited.issuerOfCard = found.id
  edited.draft.set('issuer')(found.id)
}

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
      const { field, message } = asProblem(error)
      if (field === 'condition') verdict.conditionError = message
      else if (field === 'attribute_to') edited.draft.errors.attribute_to = message
      else verdict.error = error
    }
  if (signal.aborted) return
  edited.verdict = verdict
  edited.page.update()
}

/** Stores whether strangers get tokens of the issuer, and checks the policy again. @param {PolicyDraft} edited @param {boolean} shared */
export async function answerIssuer(edited, shared) {
  await send('PATCH', `${issuersPath}/${segment(edited.draft.values.issuer)}`, { shared })
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
