// Starts the page: session, frame, and the view that the address names. Views get a Page (types.ts).
/** @import { OwnedPage, Session, View } from '../types.ts' */
import { asProblem, send, whenSignedOut } from './client.js'
import { closeDialogs, isHeld } from './dialog.js'
import { renderFrame } from './frame.js'
import { html, nothing, render } from './lit-html.js'
import { clearNotices, notify, prepareNotices } from './notice.js'
import { createPage } from './page.js'
import { empty, loading, problem } from './parts.js'
import { go, markPlace, readPlace, returnToPlace } from './router.js'
import { readSession, showSignIn, takeLink } from './sign-in.js'
import { findEntry, groups } from './views.js'

const root = /** @type {HTMLElement} */ (document.getElementById('app'))
const home = groups[0]?.entries[0]?.name ?? ''
/** @type {Session | undefined} */
let session
/** @type {{ key: string, close: () => void, queryChanged: () => void } | undefined} */
let open

const tabs = new BroadcastChannel('latchkey')
// All tabs share the cookie: this one must not show another organization or key than the one it acts as.
tabs.addEventListener('message', async () => {
  const now = await readSession().catch(() => undefined)
  if (now?.key.id !== session?.key.id || now?.read_only !== session?.read_only) location.reload()
})

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
    tabs.postMessage('signed in')
  }
  showPlace()
}

async function signOut() {
  clearNotices()
  await send('DELETE', '/admin/session', undefined, { staysSignedIn: true }).catch((error) =>
    notify('bad', problem(error)),
  )
  session = undefined
  go([])
  await start()
}

whenSignedOut(() => {
  if (session === undefined) return
  clearNotices()
  session = undefined
  void start({ hasEnded: true })
})

function leave() {
  closeDialogs()
  open?.close()
  open = undefined
}

function showPlace() {
  if (session === undefined) return
  markPlace()
  const { path } = readPlace()
  const key = path.join('/')
  if (open?.key === key) return open.queryChanged()
  leave()
  const name = path[0] ?? home
  const entry = findEntry(name)
  const content = document.createElement('div')
  content.className = 'view'
  const frame = (/** @type {string} */ title) => {
    document.title = `${title} · Latchkey`
    if (session !== undefined) renderFrame(root, { session, name, title, content, signOut })
  }
  frame(entry?.title ?? 'Not found')
  const page = createPage(session, content, frame)
  open = { key, close: page.close, queryChanged: page.queryChanged }
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

prepareNotices()
// Whoever comes back to a page that the browser kept may be signed out by now.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload()
})
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#link=')) void start()
  else if (isHeld() && open?.key !== readPlace().path.join('/')) returnToPlace()
  else showPlace()
})
void start()
