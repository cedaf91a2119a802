// What a view gets when it opens (Page in types.ts): rendering, the query of the address, polling, and work with notices.
/** @import { Content, OwnedPage, Session, Work } from '../types.ts' */
import { asProblem, hasChanged, isIdle, isNoResponse } from './client.js'
import { serverAwaySince } from './connection.js'
import { html, nothing, render } from './lit-html.js'
import { forgetNotices, forgetUnreached, notify } from './notice.js'
import { repeat } from './pace.js'
import { callout, problem } from './parts.js'
import { readPlace, replacePlace } from './router.js'

/**
 * @param {Session} session @param {HTMLElement} content @param {(title: string, whole?: string) => void} frame
 * @returns {OwnedPage}
 */
export function createPage(session, content, frame) {
  const { path, query: firstQuery } = readPlace()
  let query = firstQuery
  let [isClosed, isWaiting] = [false, false]
  let [title, whole] = ['', '']
  /** @type {(() => Content) | undefined} */
  let template
  /** @type {Work | undefined} */
  let work
  /** @type {(() => void)[]} */
  const closers = [() => render(nothing, content)]
  const update = () => {
    if (!isWaiting) queueMicrotask(renderNow)
    isWaiting = true
  }
  const polls = createPolls(update)
  const renderNow = () => {
    isWaiting = false
    if (template === undefined || isClosed) return
    content.classList.toggle('stale', serverAwaySince() !== undefined)
    render(html`${trouble(polls.failures())}${template()}`, content)
  }
  /** @type {OwnedPage} */
  const page = {
    path: path.slice(1),
    get query() {
      return query
    },
    session,
    may: (act) => session.may.includes(act),
    hasFailed: () => polls.failures().length > 0 || serverAwaySince() !== undefined,
    update,
    title: (text) => {
      title = text
      if (!isClosed) frame(title, whole)
    },
    within: (name) => {
      whole = name
      if (!isClosed && title !== '') frame(title, whole)
    },
    setQuery: (changes) => {
      query = Object.fromEntries(Object.entries({ ...query, ...changes }).filter(([, value]) => value !== ''))
      replacePlace(path, query)
      page.update()
    },
    poll: polls.add,
    refresh: polls.refresh,
    run: (work) => runWithNotice(work).finally(page.update),
    guard: (guarded) => {
      work = guarded
    },
    work: () => (work?.isUnsaved() ? work : undefined),
    onClose: (close) => void (isClosed ? close() : closers.push(close)),
    show: (shown) => {
      template = shown
      renderNow()
    },
    pause: polls.pause,
    resume: polls.resume,
    close: () => {
      isClosed = true
      polls.end()
      for (const each of closers) each()
    },
    queryChanged: () => {
      query = readPlace().query
      void page.refresh()
      page.update()
    },
  }
  return page
}

/** @param {readonly unknown[]} failures */
function trouble(failures) {
  const since = serverAwaySince()
  if (since === undefined) return failures.slice(0, 1).map(problem)
  const text = new Date(since).toLocaleTimeString()
  return callout(
    'bad',
    `The server has not responded since ${text}: this shows what was known then. It is asked again every few seconds.`,
    true,
  )
}

/** What a view reads again and again. @param {() => void} update */
function createPolls(update) {
  let [isEnded, isPaused] = [false, false]
  /** @type {Map<() => Promise<void>, unknown>} */
  const failures = new Map()
  /** @type {(() => Promise<void>)[]} */
  const polls = []
  /** @type {ReturnType<typeof repeat>[]} */
  const repeated = []
  const refresh = async () => {
    await Promise.all(polls.map((each) => each()))
  }
  // Changes of other admins appear soon. The server answers this with a 304 from memory, so that all views can ask often.
  const watch = async () => {
    const before = serverAwaySince()
    const changed = await hasChanged()
    const since = serverAwaySince()
    if (since === undefined && before !== undefined) {
      forgetUnreached()
      failures.clear()
    }
    if (since !== before) update()
    // What failed is tried again: a server or network that was away must not leave the view as it was then.
    if (since === undefined && (changed || failures.size > 0)) await refresh()
  }
  // Also at this pace while somebody only looks: what they see may be old.
  repeated.push(repeat(watch, 3, { isPaused: () => isPaused, isIdle: () => false, waits: true }))
  return {
    failures: () => [...failures.values()],
    refresh,
    /** @param {() => Promise<void>} load */
    add: (load, seconds = 30) => {
      const once = async () => {
        try {
          await load()
          failures.delete(load)
        } catch (error) {
          if (asProblem(error).status !== 401) failures.set(load, error)
        }
        update()
      }
      polls.push(once)
      // A view can arrive after somebody has left it.
      if (!isEnded) repeated.push(repeat(once, seconds, { isPaused: () => isPaused, isIdle }))
    },
    pause: () => {
      isPaused = true
    },
    resume: () => {
      isPaused = false
      for (const { wake } of repeated) void wake()
    },
    end: () => {
      isEnded = true
      for (const { end } of repeated) end()
    },
  }
}

/** @param {() => Promise<void>} work @returns {Promise<boolean>} whether it succeeded */
async function runWithNotice(work) {
  forgetNotices()
  try {
    await work()
    return true
  } catch (error) {
    if (asProblem(error).status !== 401) notify('bad', problem(error), undefined, { isUnreached: isNoResponse(error) })
    return false
  }
}
