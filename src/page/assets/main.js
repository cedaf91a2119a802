// Starts the page: session, frame, and the view that the address names. Views get a Page (types.ts).
/** @import { OwnedPage, Session, View } from '../types.ts' */
import { applyAppearance } from './appearance.js'
import { asProblem, forgetLists, noteSession, send, whenSignedOut } from './client.js'
import { askToLeave, closeDialogs, confirm, isHeld } from './dialog.js'
import { forgetDrafts } from './drafts.js'
import { renderFrame } from './frame.js'
import { html, nothing, render } from './lit-html.js'
import { clearNotices, leaveFailures, notify, prepareNotices } from './notice.js'
import { createPage } from './page.js'
import { listenForKeys } from './palette.js'
import { empty, loading, problem } from './parts.js'
import { go, keepView, markPlace, readPlace, returnToPlace } from './router.js'
import { readSession, showSignIn, signInOver, takeLink } from './sign-in.js'
import { listenInRows } from './table.js'
import { findEntry, groups } from './views.js'
import { isSame } from './you.js'

const root = /** @type {HTMLElement} */ (document.getElementById('app'))
const home = groups[0]?.entries[0]?.name ?? ''
/** @type {Session | undefined} */
let session
/** @type {{ key: string, page: OwnedPage } | undefined} */
let open
/** Signing in again over what somebody typed. @type {{ resume: (session: Session) => void } | undefined} */
let over

const tabs = new BroadcastChannel('latchkey')
// All tabs share the cookie: this one must not show another organization or key than the one it acts as.
tabs.addEventListener('message', async () => {
  const now = await readSession().catch(() => undefined)
  if (over !== undefined) return now && over.resume(now)
  if (isSame(now, session)) return
  if (hasWork()) void signInAgain({ hasEnded: now === undefined, other: now })
  else location.reload()
})

/** Whether leaving would lose something. */
const hasWork = () => isHeld() || open?.page.work() !== undefined

/** Signs in over what somebody typed, and goes on with it if it is the same key. @param {{ hasEnded?: boolean, other?: Session | undefined }} options */
async function signInAgain(options) {
  const before = session
  const { title } = document
  session = undefined
  // The person at the screen may no longer see secrets.
  closeDialogs({ isLeaving: true })
  clearNotices()
  open?.page.pause()
  const { signedIn, close } = signInOver(options)
  const followed = new Promise((resolve) => {
    over = { resume: (now) => isSame(now, before) && resolve(now) }
  })
  const typed = signedIn.then((now) => {
    if (now !== options.other) tabs.postMessage('signed in')
    return now
  })
  session = /** @type {Session} */ (await Promise.race([typed, followed]))
  noteSession()
  over = undefined
  close()
  if (isSame(session, before)) {
    document.title = title
    return open?.page.resume()
  }
  leave()
  showPlace()
}

/** Signs in where needed, then opens the place. @param {{ hasEnded?: boolean }} [options] */
async function start({ hasEnded = false } = {}) {
  const link = takeLink()
  leave()
  /** @type {unknown} */
  let failure
  if (link === undefined && !hasEnded)
    session = await readSession().catch((error) => {
      if (asProblem(error).status !== 401) failure = error
      return undefined
    })
  if (link !== undefined) session = undefined
  if (session === undefined) {
    session = await showSignIn(root, { link, hasEnded, failure })
  }
  noteSession()
  // Also after a sign-in that an issuer sent back: another tab may wait for it.
  tabs.postMessage('signed in')
  showPlace()
}

async function signOut() {
  const body = 'What you typed is not saved, and drafts of this tab are deleted.'
  if (hasWork() && !(await confirm({ title: 'Sign out without saving?', body, action: 'Sign out', isDanger: true })))
    return
  clearNotices()
  forgetDrafts()
  forgetLists()
  await send('DELETE', '/admin/session', undefined, { staysSignedIn: true }).catch((error) =>
    notify('bad', problem(error)),
  )
  session = undefined
  go([])
  await start()
}

whenSignedOut(() => {
  if (session === undefined) return
  if (hasWork()) return void signInAgain({ hasEnded: true })
  clearNotices()
  session = undefined
  void start({ hasEnded: true })
})

function leave() {
  closeDialogs({ isLeaving: true })
  open?.page.close()
  open = undefined
}

function showPlace() {
  if (session === undefined) return
  if (open !== undefined) keepView()
  markPlace()
  const { path } = readPlace()
  const key = path.join('/')
  if (open?.key === key) return open.page.queryChanged()
  if (open !== undefined) leaveFailures()
  leave()
  const name = path[0] ?? home
  const entry = findEntry(name)
  const content = document.createElement('div')
  content.className = 'view'
  const frame = (/** @type {string} */ title, whole = '') => {
    document.title = `${title} · Latchkey`
    const renderView = () => open?.page.update()
    if (session !== undefined) renderFrame(root, { session, name, title, whole, content, signOut, renderView })
  }
  frame(entry?.title ?? 'Not found')
  const page = createPage(session, content, frame)
  open = { key, page }
  if (entry === undefined) {
    page.show(() => empty('This page does not exist', 'Choose another one from the menu.'))
    return
  }
  render(loading(), content)
  void loadView(page, entry.load)
}

/** Where there is no connection, the view opens when there is one. @param {OwnedPage} page @param {() => Promise<{ view: View }>} load */
async function loadView(page, load) {
  const module = await load().catch(() => undefined)
  if (module !== undefined) return page.show(module.view(page))
  let wasAway = false
  page.show(() =>
    page.hasFailed()
      ? nothing
      : html`<p><button type="button" @click=${() => location.reload()}>Load this view again</button></p>`,
  )
  page.poll(async () => {
    await readSession().catch((error) => {
      wasAway = true
      throw error
    })
    // A browser keeps the failure of a module until a reload.
    if (wasAway) location.reload()
  })
}

let isAsking = false

/** Opens where a link, Back or Forward leads, unless what was typed keeps somebody here. */
async function arrive() {
  if (location.hash.startsWith('#link=')) return start()
  if (isAsking) return
  const isElsewhere = open !== undefined && open.key !== readPlace().path.join('/')
  if (session !== undefined && isElsewhere && isHeld()) return returnToPlace()
  const work = session !== undefined && isElsewhere ? open?.page.work() : undefined
  if (work === undefined) return showPlace()
  isAsking = true
  const answer = await askToLeave()
  isAsking = false
  if (answer === '') return returnToPlace()
  if (answer === 'discard') work.discard()
  showPlace()
}

history.scrollRestoration = 'manual'
applyAppearance()
prepareNotices()
listenInRows()
listenForKeys(
  () => session,
  () => void signOut(),
)
addEventListener('beforeunload', (event) => {
  if (hasWork()) event.preventDefault()
})
// Anyone who comes back to a page that the browser kept may be signed out by now.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload()
})
addEventListener('hashchange', () => void arrive())
void start()
