// How often a view asks the server: at its pace while somebody uses the page, more rarely while nobody does, and not at all while it is hidden.

/** The event of somebody who comes back to the page after a while. */
export const returned = 'latchkey-returned'

/** So much rarer, while nobody uses the page. */
const idleFactor = 5

/**
 * Runs something now and again and again, but not while the page is hidden or signed out, and never twice at a time.
 * @param {() => Promise<void>} act @param {number} seconds
 * @param {{ isPaused: () => boolean, isIdle: () => boolean, waits?: boolean }} options `waits`: not now, but after the seconds
 */
export function repeat(act, seconds, { isPaused, isIdle, waits = false }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  let [isEnded, isRunning] = [false, false]
  const next = async () => {
    clearTimeout(timer)
    if (isEnded || isRunning || document.hidden || isPaused()) return
    isRunning = true
    await act()
    isRunning = false
    if (!isEnded) timer = setTimeout(next, seconds * 1_000 * (isIdle() ? idleFactor : 1))
  }
  document.addEventListener('visibilitychange', next)
  document.addEventListener(returned, next)
  addEventListener('online', next)
  if (waits) timer = setTimeout(next, seconds * 1_000)
  else void next()
  return {
    wake: next,
    end: () => {
      isEnded = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', next)
      document.removeEventListener(returned, next)
      removeEventListener('online', next)
    },
  }
}
