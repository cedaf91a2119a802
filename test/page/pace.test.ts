// How often the page asks: at its pace, five times less often while nobody uses it, and not while it is hidden. The timers are held here.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'

// Not a path that TypeScript follows: the page has its own types.
const { repeat, returned } = (await import(`${import.meta.dirname}/../../src/page/assets/pace.js`)) as {
  returned: string
  repeat: (act: () => Promise<void>, seconds: number, options: object) => { wake: () => void; end: () => void }
}

type Global = { document?: unknown; addEventListener?: unknown; removeEventListener?: unknown }
const kept = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }
const document = Object.assign(new EventTarget(), { hidden: false })
const held = Symbol('a held timer')
/** The timer that waits, if one does. */
let timer: { act: () => void; milliseconds: number } | undefined
let [times, isIdle, isPaused] = [0, false, false]
const options = { isPaused: () => isPaused, isIdle: () => isIdle }
const act = async () => {
  times += 1
}
/** Lets promises go on. */
const settle = () => new Promise((resolve) => setImmediate(resolve))
const fire = async () => {
  const { act: fired = () => {} } = timer ?? {}
  timer = undefined
  fired()
  await settle()
}
const tell = async (name: string) => {
  document.dispatchEvent(new Event(name))
  await settle()
}

beforeAll(() => {
  const window = new EventTarget()
  const global = globalThis as Global
  global.document = document
  global.addEventListener = window.addEventListener.bind(window)
  global.removeEventListener = window.removeEventListener.bind(window)
  // Those of everything else in this process go on.
  const hold = (fired: () => void, milliseconds: number, ...more: unknown[]) => {
    if (milliseconds !== 3_000 && milliseconds !== 15_000) return kept.setTimeout(fired, milliseconds, ...more)
    timer = { act: fired, milliseconds }
    return held
  }
  const drop = (dropped: Parameters<typeof clearTimeout>[0] | typeof held) => {
    if (dropped === held) timer = undefined
    else kept.clearTimeout(dropped as Parameters<typeof clearTimeout>[0])
  }
  Object.assign(globalThis, { setTimeout: hold, clearTimeout: drop })
})
afterAll(() => {
  Object.assign(globalThis, kept)
  for (const name of ['document', 'addEventListener', 'removeEventListener'] as const)
    delete (globalThis as Global)[name]
})
beforeEach(() => {
  ;[times, isIdle, isPaused, timer] = [0, false, false, undefined]
  document.hidden = false
})

test('it asks now, and then at its pace', async () => {
  const { end } = repeat(act, 3, options)
  await settle()
  expect([times, timer?.milliseconds]).toEqual([1, 3_000])
  await fire()
  expect([times, timer?.milliseconds]).toEqual([2, 3_000])
  end()
  expect(timer).toBeUndefined()
})

test('it asks five times less often while nobody uses the page, and at once when somebody is back', async () => {
  isIdle = true
  const { end } = repeat(act, 3, { ...options, waits: true })
  expect([times, timer?.milliseconds]).toEqual([0, 3_000])
  await fire()
  expect([times, timer?.milliseconds]).toEqual([1, 15_000])
  isIdle = false
  await tell(returned)
  expect([times, timer?.milliseconds]).toEqual([2, 3_000])
  end()
})

test('it does not ask while the page is hidden, and does at once when it is shown again', async () => {
  const { end } = repeat(act, 3, options)
  await settle()
  document.hidden = true
  await tell('visibilitychange')
  expect(timer).toBeUndefined()
  document.hidden = false
  await tell('visibilitychange')
  expect([times, timer?.milliseconds]).toEqual([2, 3_000])
  document.hidden = true
  await fire()
  expect([times, timer]).toEqual([2, undefined])
  end()
})

test('it does not ask while nobody is signed in, nor twice at a time, nor after its end', async () => {
  isPaused = true
  const { wake, end } = repeat(act, 3, options)
  await settle()
  expect(times).toBe(0)
  isPaused = false
  const { promise, resolve } = Promise.withResolvers<void>()
  const slow = repeat(
    () => {
      times += 1
      return promise
    },
    3,
    options,
  )
  slow.wake()
  await tell(returned)
  // The first one asks too.
  expect(times).toBe(2)
  resolve()
  slow.end()
  end()
  wake()
  await tell(returned)
  expect([times, timer]).toEqual([2, undefined])
})
