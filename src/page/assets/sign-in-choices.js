// Signing in with an identity provider: the choices, and what to do after one that failed, which the address says.
import { html, nothing } from './lit-html.js'
import { callout, stored } from './parts.js'

/** @typedef {{ id: string, name: string }} Choice */

/** The issuers with which people sign in here. Without a connection, nobody has a choice. @returns {Promise<Choice[]>} */
export async function readChoices() {
  try {
    const response = await fetch('sign-in')
    return response.ok ? (await response.json()).data : []
  } catch {
    return []
  }
}

/** @type {Readonly<Record<string, string>>} */
const sentences = {
  canceled: 'The sign-in was canceled.',
  unavailable:
    'The identity provider could not be reached. Try again later. On the machine of the server, latchkey admin open signs you in without it.',
  refused_by_issuer:
    'The identity provider refused the sign-in. Sign in again; if that fails, ask an administrator to check its client.',
  invalid: 'The answer of the identity provider was not valid, so nobody is signed in. Sign in again.',
  expired: 'The sign-in took too long, or began in another browser. Sign in again.',
  not_allowed: 'You are known, but no policy lets you in. Ask an administrator for a role.',
  too_many: 'Too many people sign in from this address. Wait a minute, and sign in again.',
}

/** Takes what failed out of the address. @returns {{ sentence: string, requestId: string } | undefined} */
export function takeFailure() {
  const [path, query] = location.hash.split('?')
  const failed = path === '#/' ? new URLSearchParams(query).get('failed') : null
  if (failed === null || !Object.hasOwn(sentences, failed)) return undefined
  const requestId = new URLSearchParams(query).get('request') ?? ''
  history.replaceState(null, '', '#/')
  return { sentence: sentences[failed] ?? '', requestId: /^[\w-]{1,64}$/.test(requestId) ? requestId : '' }
}

/** @param {ReturnType<typeof takeFailure>} failure */
export function failureNotice(failure) {
  if (failure === undefined) return nothing
  const id = failure.requestId === '' ? nothing : html` <span class="muted small">Request ${failure.requestId}</span>`
  return callout('bad', html`${failure.sentence}${id}`, true)
}

/** @param {readonly Choice[]} choices @param {boolean} isOver over what somebody typed, which another tab must not lose */
export function choiceList(choices, isOver) {
  if (choices.length === 0) return nothing
  return html`<div class="choices">
    ${choices.map(({ id, name }) => html`<a class="button primary" href=${`sign-in/with/${encodeURIComponent(id)}`} target=${isOver ? '_blank' : nothing}><span>Continue with ${stored(name, 60)}</span></a>`)}
  </div>`
}
