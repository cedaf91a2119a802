// What mends a finding of the doctor or a refusal, as a button or a link; the command stays behind "As a command". The server names the operation
// and its subjects; how the page does each operation is here, once.
/** @import { DoctorFinding, Key, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Content, Page } from '../types.ts' */
import { get, segment, send } from './client.js'
import { html, nothing } from './lit-html.js'
import { notify } from './notice.js'
import { button, code, stored } from './parts.js'
import { href } from './router.js'
import { adviceOf } from './words.js'

/**
 * `to` opens a place, `post` is a path that does it at once, and `done` what is said then, of the response; `failed` is said instead, if it
 * returns something.
 * `find` opens a place that is known only after a request.
 * @typedef {{ text: string, isOnce?: true, find?: (name: string) => Promise<string>, to?: (name: string, area: string) => string, post?: (name: string) => string, done?: (data: any) => string, failed?: (data: any, name: string) => string | undefined }} Deed
 */

/** How the page does an operation. @type {Record<string, Deed>} */
const deeds = {
  'backup.create': {
    text: 'Back up now',
    isOnce: true,
    post: () => '/installation/backups',
    done: ({ file }) => `The backup is ${file}`,
  },
  'budgets.top_up': { text: 'Open', to: (name) => href(['budgets'], { search: name }) },
  'issuers.import': { text: 'Import a bundle', isOnce: true, to: () => href(['bundles']) },
  'issuers.refresh': {
    text: 'Fetch keys now',
    post: (name) => `/workload-identity/issuers/${segment(name)}/refresh`,
    done: () => 'The keys were fetched',
  },
  'issuers.update': { text: 'Renew keys', to: (name) => href(['issuers', name, 'edit']) },
  'keys.enable': { text: 'Enable its key', to: (name) => href(['policies', name]) },
  'keys.update': {
    text: 'Edit',
    to: (name, area) => (area === 'policies' ? href(['policies', name]) : ''),
    find: keyForm,
  },
  'organizations.plan': { text: 'Change the plan', to: () => href(['organization']) },
  'policies.check': { text: 'Try a token', to: (name) => href(['try'], { policy: name }) },
  'policies.delete': { text: 'Delete', to: (name) => href(['policies', name]) },
  'policies.resume': {
    text: 'Resume',
    post: (name) => `/workload-identity/policies/${segment(name)}/resume`,
    done: () => 'Exchanges are accepted again',
  },
  'policies.update': { text: 'Edit the policy', to: (name) => href(['policies', name, 'edit']) },
  'prices.set': { text: 'Set a price', isOnce: true, to: () => href(['upstreams', 'prices', 'new']) },
  'upstreams.check': {
    text: 'Check',
    post: (name) => `/installation/upstreams/${segment(name)}/check`,
    done: () => 'The server responds',
    failed: ([{ ok, problem }], name) => (ok ? undefined : `${name} fails: ${problem}`),
  },
  'webhooks.test': {
    text: 'Test',
    post: (name) => `/webhooks/${segment(name)}/test`,
    done: () => 'The test event arrived',
    failed: ({ ok, problem }) => (ok ? undefined : `The test event did not arrive: ${problem}`),
  },
}

const shownMax = 3

/** The form of a key that a finding names; the list where several have the name. @param {string} name */
async function keyForm(name) {
  const found = (await get('/keys', { contains: name, limit: 100 })).data
  const own = /** @type {Key[]} */ (found).filter((key) => key.name === name)
  return own.length === 1 ? href(['keys', own[0]?.hash ?? '', 'edit']) : href(['keys'], { search: name })
}

/** Lists of what a finding is about, by its code. @type {Record<string, string>} */
const lists = { policy_never_issued: href(['policies'], { unused: 'never' }) }
const isId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** A button or link for an operation; nothing for a role that may not do it. @param {Page} page @param {string} operation @param {string} name @param {{ area?: string, isNamed?: boolean }} [more] */
export function deed(page, operation, name, { area = '', isNamed = false } = {}) {
  const found = deeds[operation]
  if (found === undefined || !page.may(/** @type {any} */ (operation))) return nothing
  const { text, to, find, post, done, failed } = found
  const place = to?.(name, area) ?? ''
  // An id says nothing to who hears it.
  const label = isId.test(name) ? text : `${text} ${name}`.slice(0, 120)
  const words = isNamed ? html`${text} <span class="muted">${stored(name, 60)}</span>` : text
  if (place !== '') return html`<a class="button" href=${place} aria-label=${label}>${words}</a>`
  if (find !== undefined)
    return button(page, /** @type {any} */ (words), async () => location.assign(await find(name)), '', label)
  const act = async () => {
    const response = await send('POST', post?.(name) ?? '', {})
    const failure = failed?.(response?.data, name)
    if (failure === undefined) notify('ok', done?.(response?.data) ?? 'Done')
    else notify('bad', failure)
    await page.refresh()
  }
  return button(page, /** @type {any} */ (words), act, '', label)
}

/** What to do about a finding. @param {Page} page @param {DoctorFinding} finding @returns {Content} */
export function remedy(page, { area, code: kind, operation, names, action }) {
  const found = operation === null ? undefined : deeds[operation]
  const named = found?.isOnce ? [names[0] ?? ''] : names
  const buttons = named
    .map((name) => deed(page, operation ?? '', name, { area, isNamed: names.length > 1 }))
    .filter((each) => each !== nothing)
  if (buttons.length === 0) return advice(area, names, action)
  const list = names.length > 1 && lists[kind]
  return html`<div class="actions">${list ? html`<a class="button" href=${list}>Show them</a>` : nothing}${buttons.slice(0, shownMax)}${
    buttons.length > shownMax
      ? html`<details class="command"><summary>${buttons.length - shownMax} more</summary><div class="actions">${buttons.slice(shownMax)}</div></details>`
      : nothing
  }${asCommand(action)}</div>`
}

/** What to do where the page has no button for it, in words; a command stays folded. @param {string} area @param {readonly string[]} names @param {string} action @returns {Content} */
function advice(area, names, action) {
  const { words, topics } = adviceOf(action)
  const manual = topics.map((topic) => html` <a href=${href(['manual', topic])}>Manual: ${topic}</a>`)
  const isCommand = action.replaceAll('latchkey help ', '').includes('latchkey ')
  return html`${words === '' ? nothing : html`<p class="muted">To do: ${stored(words, 1_000)}${placeOf(area, names)}${manual}</p>`}
    ${isCommand ? html`<div class="actions">${asCommand(action)}</div>` : nothing}`
}

/** Where the page has what a finding is about. @param {string} area @param {readonly string[]} names */
function placeOf(area, names) {
  const place = area === 'budgets' ? 'keys' : area
  if (!['keys', 'policies', 'issuers', 'upstreams', 'webhooks'].includes(place)) return nothing
  const search = names.length === 1 && place !== 'webhooks' ? { search: names[0] ?? '' } : {}
  return html`. Here: <a href=${href([place], search)}>${place === 'upstreams' ? 'servers' : place}</a>`
}

/** A command behind a summary, with copy. @param {string} text @param {string} [title] */
export function asCommand(text, title = 'As a command') {
  return html`<details class="command"><summary>${title}</summary>${code(text, 'command')}</details>`
}

/** What makes an inactive policy issue tokens again. @param {Page} page @param {Policy} policy @returns {Content} */
export function remedyOfPolicy(page, { id, key_id: key, inactive_reason: reason }) {
  const enable = async () => {
    await send('PATCH', `/keys/${segment(key)}`, { disabled: false })
    notify('ok', 'Its key is enabled')
    await page.refresh()
  }
  if (reason === 'key_disabled') return page.may('keys.enable') ? button(page, 'Enable its key', enable) : nothing
  if (reason === 'key_expired')
    return page.may('keys.update')
      ? html`<a class="button" href=${href(['keys', key, 'edit'])}>Change when its key expires</a>`
      : nothing
  const [operation = ''] = ofReasons[reason ?? ''] ?? []
  return deed(page, operation, id, { area: 'policies' })
}

const decidedByPolicy = [
  ...[
    'key_deleted',
    'audience_mismatch',
    'subject_mismatch',
    'scopes_missing',
    'scopes_mismatch',
    'token_type_missing',
  ],
  ...['token_type_mismatch', 'condition_false', 'condition_error', 'attribution_failed', 'jti_missing'],
]

/** By reason: the operation, and what it is done to. @type {Record<string, readonly [operation: string, subject: 'policy_id' | 'issuer_id']>} */
const ofReasons = {
  policy_paused: ['policies.resume', 'policy_id'],
  organization_not_entitled: ['organizations.plan', 'policy_id'],
  key_disabled: ['keys.enable', 'policy_id'],
  key_expired: ['keys.update', 'policy_id'],
  kid_unknown: ['issuers.refresh', 'issuer_id'],
  issuer_keys_expired: ['issuers.update', 'issuer_id'],
  bundle_missing: ['issuers.import', 'issuer_id'],
  bundle_expired: ['issuers.import', 'issuer_id'],
  ...Object.fromEntries(
    decidedByPolicy.map((reason) => [reason, /** @type {const} */ (['policies.update', 'policy_id'])]),
  ),
}

/** What mends a refusal of an exchange, beside its text. @param {Page} page @param {Record<string, any>} exchange @returns {Content} */
export function remedyOfRefusal(page, exchange) {
  const [operation, subject] = ofReasons[exchange.reason] ?? []
  const name = subject && exchange[subject]
  return operation === undefined || !name ? nothing : deed(page, operation, name, { area: 'policies' })
}
