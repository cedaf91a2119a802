// What the admin page costs in a large installation: `bun test/bench/page.ts`. It measures the time and bytes of each view in Chromium, the
// searches as somebody types, what a page costs that nobody uses, and how much longer inference requests take meanwhile. BENCH_PHASES=0 leaves
// out the last and BENCH_VIEWS=0 all before it, BENCH_SMALL=1 tries it with few rows. At most four minutes. Linux with Chromium only.
import { chromium, type Response } from 'playwright-core'
import { fill } from './growth.ts'
import { installLatchkey, quantile, spawnServer } from './measure.ts'

const size = process.env.BENCH_SMALL === undefined ? 1 : 0.01
const filling = {
  keys: 10_000 * size,
  policies: 10_000 * size,
  spread: 1_000_000 * size,
  spreadExchanges: 200_000 * size,
}
const [concurrency, loadMilliseconds, phases] = [8, 3_000, Number(process.env.BENCH_PHASES ?? 5)]
/** Of each view, of a minute in which nobody uses the page and nothing changes, and of its memory. */
const [viewMillisecondsMax, idleBytesMax, heapBytesMax] = [400, 10_000, 8_000_000]
/**
 * What somebody who uses the page may add to the p99 of inference, as a factor: while nothing changes, open pages get a 304 from memory; a list
 * or a report takes turns of the event loop and a thread beside it.
 */
const [openFactorMax, useFactorMax] = [1.1, 1.5]
const missed: string[] = []

const upstream = await spawnServer([process.execPath, 'test/bench/upstream.ts'])
const settings = { LATCHKEY_UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/v1` }
const { run, folder, serve } = await installLatchkey(settings)
const { key: management } = await run('keys', 'create', '--name', 'admin', '--management')
const { key: caller } = await run('keys', 'create', '--name', 'caller')
await run('issuers', 'add', '--name', 'idp', '--issuer-url', 'https://idp.example.com')
await fill(folder, filling)
const { baseUrl, stop } = await serve()
console.log(`filled with ${JSON.stringify(filling)}`)

const browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })
let page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
const show = (name: string, value: string) => console.log(`${name.padEnd(56)} ${value}`)

/** The bytes of a response, and 0 of one that was given up. */
async function sizeOf(response: Response): Promise<number> {
  const sizes = await response
    .request()
    .sizes()
    .catch(() => undefined)
  return (sizes?.responseBodySize ?? 0) + (sizes?.responseHeadersSize ?? 0)
}

/** Runs in the page: when an element of the next view is painted. What is shown before does not count. */
function watch(selector: string): void {
  for (const view of document.querySelectorAll('main .view')) view.setAttribute('data-old', '')
  const shown = window as unknown as { shownAt: Promise<number> }
  shown.shownAt = new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (document.querySelector(`main > .view:not([data-old]) ${selector}`) === null) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.timeOrigin + performance.now())))
    })
    observer.observe(document, { childList: true, subtree: true })
  })
}

/** The time until an element is painted, and what was transferred until then. The page measures it: this process adds its own time. */
async function measure(name: string, act: () => Promise<unknown>, selector: string): Promise<void> {
  const sizes: Promise<number>[] = []
  const count = (response: Response) => sizes.push(sizeOf(response))
  page.on('response', count)
  await page.addInitScript(watch, selector)
  await page.evaluate(watch, selector)
  const startedAt = performance.timeOrigin + performance.now()
  await act()
  const milliseconds = ((await page.evaluate('shownAt')) as number) - startedAt
  await page.waitForFunction(() => document.querySelector('.loading') === null)
  page.off('response', count)
  const bytes = (await Promise.all(sizes)).reduce((sum, each) => sum + each, 0)
  if (milliseconds > viewMillisecondsMax) missed.push(`${name}: ${milliseconds.toFixed(0)} ms`)
  show(name, `${milliseconds.toFixed(0)} ms, ${sizes.length} requests, ${(bytes / 1_024).toFixed(0)} KB`)
}

/** What a request alone takes, without a browser. */
async function time(path: string): Promise<void> {
  const times: number[] = []
  for (let turn = 0; turn < 5; turn++) {
    const startedAt = performance.now()
    const response = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${management}` } })
    const { length } = await response.text()
    times.push(performance.now() - startedAt)
    if (turn === 4)
      show(
        path,
        `first ${times[0]?.toFixed(0)} ms, later ${quantile(times.slice(1), 0.5).toFixed(0)} ms, ${length} characters`,
      )
  }
}

const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'Hello' }] })

/** Milliseconds of each inference request, with several at a time. */
async function load(): Promise<number[]> {
  const times: number[] = []
  const end = performance.now() + loadMilliseconds
  const send = async () => {
    while (performance.now() < end) {
      const startedAt = performance.now()
      const headers = { authorization: `Bearer ${caller}`, 'content-type': 'application/json' }
      await (await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers, body })).text()
      times.push(performance.now() - startedAt)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, send))
  return times
}

const origin = new URL(baseUrl).origin

async function measureViews(): Promise<void> {
  await page.goto(`${origin}/admin/`)
  await page.getByLabel('Management key').fill(management)
  await measure('the first view after the start of the server', () => page.keyboard.press('Enter'), '.chart')
  const cookies = await page.context().cookies()
  const second = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  await second.addCookies(cookies)
  page = await second.newPage()
  await measure('the first view in a browser without a cache', () => page.goto(`${origin}/admin/`), '.chart')
  const open = (name: string, hash: string, selector: string) =>
    measure(name, () => page.evaluate((to) => location.assign(to), hash), selector)
  for (const view of ['policies', 'keys']) {
    await open(`the list of ${view}`, `#/${view}`, 'tbody tr')
    const search = page.getByRole('searchbox')
    for (const text of ['9', '99', '999', '9999']) {
      const startedAt = performance.now()
      await search.fill(text)
      await page.waitForFunction(
        (wanted) => [...document.querySelectorAll('tbody th a')].every((link) => link.textContent?.includes(wanted)),
        text,
      )
      show(`search ${view} for ${text}`, `${(performance.now() - startedAt).toFixed(0)} ms`)
    }
    await search.fill('')
    await measure(`one of the ${view}`, () => page.locator('tbody th a').first().click(), 'dl.facts')
    await open(`the unused ${view}`, `#/${view}?unused=never`, ':is(tbody tr, .empty)')
  }
  const anything = ':is(tbody tr, .empty, .card)'
  const views = ['issuers', 'exchanges', 'requests', 'changes', 'budgets', 'presets', 'upstreams', 'system']
  for (const view of [...views, 'start', 'try', 'bundles', 'audit-log', 'documents', 'organization', 'webhooks'])
    await open(`the view ${view}`, `#/${view}`, anything)
  await open('the manual', '#/manual/policies', '.prose')
  await open('the refused requests', '#/requests?tab=refused', anything)
  for (const by of ['key', 'model', 'policy', 'day']) {
    await open(`the usage by ${by}`, `#/usage?by=${by}`, '.chart')
    // A view that is open stays open when only its filter changes.
    await open('another view', '#/try', '.card')
  }
  await open('the overview of 30 days', '#/overview?per=day', '.chart')
  for (const view of ['exchanges', 'requests']) {
    await open(`the list of ${view}`, `#/${view}`, 'tbody tr')
    await measure(`one of the ${view}`, () => page.locator('tbody th a').first().click(), ':is(dl.facts, .card)')
  }
}

/** Nobody uses the page for a minute; then what it asks for in the next one is counted. */
async function measureIdle(): Promise<void> {
  await page.goto(`${origin}/admin/#/exchanges`)
  await Bun.sleep(61_000)
  const sizes: Promise<number>[] = []
  page.on('response', (response) => sizes.push(sizeOf(response)))
  await Bun.sleep(60_000)
  const bytes = (await Promise.all(sizes)).reduce((sum, each) => sum + each, 0)
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('HeapProfiler.collectGarbage')
  const { usedSize } = await cdp.send('Runtime.getHeapUsage')
  show('a minute in which nobody uses the page', `${sizes.length} responses, ${bytes} bytes; heap ${usedSize} bytes`)
  if (bytes > idleBytesMax) missed.push(`${bytes} bytes while nobody uses the page`)
  if (usedSize > heapBytesMax) missed.push(`${usedSize} bytes of heap`)
}
async function timeRequests(): Promise<void> {
  for (const path of [
    '/usage?by=day',
    '/usage?by=key&order=total_tokens&per_day=true&days_of=8&limit=50',
    '/usage?by=model&order=total_tokens&per_day=true&days_of=8&limit=50',
    '/workload-identity/audit/counts?per=hour',
    '/workload-identity/audit/counts?per=day',
    '/workload-identity/findings?installation=true',
    '/keys?contains=9999&limit=50',
    '/workload-identity/policies?contains=9999&limit=50&counts=true',
  ])
    await time(path)
}

const ask = async (path: string) =>
  void (await (await fetch(baseUrl + path, { headers: { authorization: `Bearer ${management}` } })).text())
const overview = [
  '/workload-identity/findings?installation=true',
  '/workload-identity/audit/counts?per=hour',
  '/usage?by=day',
]
const keys = ['', '9', '99', '999'].map((text) => `/keys?limit=50${text === '' ? '' : `&contains=${text}`}`)
const policies = ['', '999'].map(
  (text) => `/workload-identity/policies?limit=50&counts=true${text === '' ? '' : `&contains=${text}`}`,
)

/** Asks what pages ask while `views` are opened one after the other. The browser runs on another machine. */
async function usePage(views: string[][], restMilliseconds: number): Promise<void> {
  const end = performance.now() + loadMilliseconds
  for (let turn = 0; performance.now() < end; turn++) {
    for (const path of views[turn % views.length] ?? []) await ask(path)
    await Bun.sleep(restMilliseconds)
  }
}

const uses: Record<string, () => Promise<void>> = {
  'nobody on the page': async () => {},
  'the overview open on three screens': () =>
    usePage([['/admin/revision', '/admin/revision', '/admin/revision']], 3_000),
  'somebody who searches keys and policies': () => usePage([keys, policies], 1_000),
  'somebody who opens a view every second': () =>
    usePage([overview, keys, policies, ['/usage?by=key&order=total_tokens&per_day=true&days_of=8&limit=50']], 1_000),
}
/** The p99 with each use, as factor of that with nobody in the same phase: the median of the phases. */
async function measureInfluence(): Promise<void> {
  await Promise.all(overview.map(ask))
  await load()
  const p99s = new Map(Object.keys(uses).map((name): [string, number[]] => [name, []]))
  for (let phase = 0; phase < phases; phase++)
    for (const [name, use] of Object.entries(uses)) {
      const [found] = await Promise.all([load(), use()])
      p99s.get(name)?.push(quantile(found, 0.99))
    }
  const [[, alone = []] = [], ...others] = p99s
  show('p99 of inference with nobody on the page', `${quantile(alone, 0.5).toFixed(2)} ms`)
  for (const [index, [name, found]] of others.entries()) {
    const factors = found.map((p99, phase) => p99 / (alone[phase] ?? p99))
    const factor = quantile(factors, 0.5)
    const bound = index === 0 ? openFactorMax : useFactorMax
    const each = factors.map((one) => one.toFixed(2)).join(' ')
    show(`p99 of inference with ${name}`, `${factor.toFixed(2)} times that (at most ${bound}; ${each})`)
    if (factor > bound) missed.push(`p99 with ${name}: ${factor.toFixed(2)} times`)
  }
}

if (process.env.BENCH_VIEWS !== '0') {
  await measureViews()
  await measureIdle()
  await timeRequests()
  await page.goto('about:blank')
}
if (phases > 0) await measureInfluence()
show('targets', missed.length === 0 ? 'reached' : `missed: ${missed.join(', ')}`)
await browser.close()
await stop()
await upstream.stop()
process.exit(0)
