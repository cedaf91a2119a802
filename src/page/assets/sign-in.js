// Signing in with an identity provider, with a management key, or with the one-time link of `latchkey admin open`, whose secret comes in the fragment.
/** @import { Session } from '../types.ts' */
import { get, send } from './client.js'
import { createDraft, focusFirstError, form } from './form.js'
import { icon } from './icons.js'
import { html, nothing, render } from './lit-html.js'
import { callout, problem, stored } from './parts.js'
import { choiceList, failureNotice, readChoices, takeFailure } from './sign-in-choices.js'
import { nameOf } from './you.js'

/** Takes the secret of a link out of the address, so that it is in no history entry. */
export function takeLink() {
  const link = /^#link=(.+)$/.exec(location.hash)?.[1]
  if (link !== undefined) history.replaceState(null, '', '#/')
  return link
}

/** @returns {Promise<Session>} */
export async function readSession() {
  return (await get('/admin/session', {}, { staysSignedIn: true })).data
}

/** @param {{ api_key: string } | { link: string }} credential @returns {Promise<Session>} */
async function signIn(credential) {
  return (await send('POST', '/admin/session', credential, { staysSignedIn: true })).data
}

/** The form that a place shows: after a sign-in, a view stands there. @type {WeakMap<HTMLElement, symbol>} */
const latest = new WeakMap()

/**
 * Shows the form until somebody is signed in.
 * @param {HTMLElement} root
 * @param {{ link?: string | undefined, hasEnded?: boolean, other?: Session | undefined, failure?: unknown, isOver?: boolean }} options
 *   `other` is who signed in in another tab, which this tab can follow
 * @returns {Promise<Session>}
 */
export function showSignIn(root, { link, hasEnded = false, other, failure, isOver = false }) {
  document.title = 'Sign in · Latchkey'
  const failed = takeFailure()
  /** @type {import('./sign-in-choices.js').Choice[]} */
  let choices = []
  return new Promise((resolve) => {
    const own = Symbol()
    latest.set(root, own)
    const finish = (/** @type {Session} */ session) => {
      latest.delete(root)
      resolve(session)
    }
    let busy = link !== undefined
    let problemShown = failure
    const update = () => render(template(), root)
    const draft = createDraft({ update }, { api_key: '' })
    const attempt = async (/** @type {{ api_key: string } | { link: string }} */ credential) => {
      busy = true
      update()
      try {
        const session = await signIn(credential)
        draft.values.api_key = ''
        render(nothing, root)
        finish(session)
      } catch (error) {
        ;[busy, problemShown] = [false, error]
        update()
        focusFirstError()
      }
    }
    const template = () => html`<main class="sign-in">
      <div class="card">
        <h1>${icon('keys')} Latchkey</h1>
        ${hasEnded && problemShown === undefined ? callout('info', 'Your session has ended. Sign in again to go on where you were.') : nothing}
        ${other === undefined ? nothing : follow(other, finish)}
        ${problemShown === undefined ? failureNotice(failed) : problem(problemShown)}
        ${choiceList(choices, isOver)}
        ${choices.length === 0 ? keyForm() : html`<details><summary>Sign in with a management key</summary>${keyForm()}</details>`}
      </div>
    </main>`
    const keyForm = () =>
      form(
        { onSubmit: () => void attempt(draft.values), submit: 'Sign in', busy },
        draft.field('api_key', 'Management key', {
          type: 'password',
          mono: true,
          placeholder: 'sk-lk-v1-…',
          required: true,
          help: html`On the machine of the server, <code>latchkey admin open</code> signs you in without a key.`,
        }),
      )
    update()
    void readChoices().then((found) => {
      choices = found
      if (latest.get(root) === own) update()
    })
    document.getElementById('f-api_key')?.focus()
    if (link !== undefined) void attempt({ link })
  })
}

/** @param {Session} other @param {(session: Session) => void} act */
function follow(other, act) {
  return callout(
    'info',
    html`<div class="stack"><p>Another tab signed in as ${stored(nameOf(other), 80)}. Sign in with your key to go on with what you typed here, which
      stays a draft of your key in this tab.</p>
      <div><button type="button" @click=${() => act(other)}>Go on as ${stored(nameOf(other), 80)}</button></div></div>`,
  )
}

/**
 * The same over what somebody typed, which stays in the page below it and is not seen.
 * @param {{ hasEnded?: boolean, other?: Session | undefined }} options
 * @returns {{ signedIn: Promise<Session>, close: () => void }}
 */
export function signInOver(options) {
  const element = document.createElement('dialog')
  element.className = 'over'
  element.setAttribute('aria-label', 'Sign in')
  document.body.append(element)
  element.showModal()
  element.addEventListener('cancel', (event) => event.preventDefault())
  // A browser lets nobody prevent a second Escape.
  element.addEventListener('close', () => element.isConnected && element.showModal())
  return { signedIn: showSignIn(element, { ...options, isOver: true }), close: () => element.remove() }
}
