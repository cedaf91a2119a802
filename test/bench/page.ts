// What the admin page costs in a large installation: `bun test/bench/page.ts`. It measures the time and bytes of the first view in Chromium, the
// searches as somebody types, and how much longer inference requests take meanwhile. Linux with Chromium only.
import { chromium } from 'playwright-core'
import { fill } from './growth.ts'
import { installLatchkey, quantile, spawnServer } from './measure.ts'

const filling = { keys: 10_000, policies: 10_000, spread: 1_000_000, spreadExchanges: 200_000 }
const [concurrency, loadMilliseconds, phases] = [8, 10_000, 3]

const upstream = await spawnServer([process.execPath, 'test/bench/upstream.ts'])
const settings = { LATCHKEY_UPSTREAM_URL: `http://127.0.0.1:${upstream.port}/v1` }
const { run, folder, serve } = await installLatchkey(settings)
const { key: management } = await run('keys', 'create', '--name', 'admin', '--management')
const { key: caller } = await run('keys', 'create', '--name', 'caller')
await run('issuers', 'add', '--name', 'idp', '--url', 'https://idp.example.com')
await fill(folder, filling)
const { baseUrl, stop } = await serve()
console.log(`filled with ${JSON.stringify(filling)}`)

const browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
const show = (name: string, value: string) => console.log(`${name.padEnd(56)} ${value}`)

/** The time until an element is shown, and what was transferred until then. */
async function measure(name: string, act: () => Promise<unknown>, selector: string): Promise<void> {
  let bytes = 0
  let requests = 0
  const count = async (response: {
    request: () => { sizes: () => Promise<{ responseBodySize: number; responseHeadersSize: number }> }
  }) => {
    const { responseBodySize, responseHeadersSize } = await response
      .request()
      .sizes()
      .catch(() => ({ responseBodySize: 0, responseHeadersSize: 0 }))
    bytes += responseBodySize + responseHeadersSize
    requests += 1
  }
  page.on('response', count)
  const startedAt = performance.now()
  await act()
  await page.waitForSelector(selector)
  const milliseconds = performance.now() - startedAt
  await page.waitForLoadState('networkidle')
  page.off('response', count)
  show(name, `${milliseconds.toFixed(0)} ms, ${requests} requests, ${(bytes / 1_024).toFixed(0)} KB`)
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
await page.goto(`${origin}/admin/`)
await page.getByLabel('Management key').fill(management)
await measure('the first view after the start of the server', () => page.keyboard.press('Enter'), '.tiles')
await measure('the first view in an empty browser cache', () => page.reload(), '.tiles')
for (const [view, first] of [
  ['policies', 'deploy-1'],
  ['keys', 'workload-1'],
] as const) {
  await measure(`the list of ${view}`, () => page.goto(`${origin}/admin/#/${view}`), `text=${first}`)
  const search = page.getByRole('searchbox')
  for (const text of ['99', '999', '9999'])
    await measure(
      `search ${view} for ${text}`,
      () => search.fill(text),
      `role=status >> text=/^${text === '9999' ? 1 : ''}/`,
    )
}
for (const path of [
  '/usage?by=day',
  '/usage?by=key&per_day=true&limit=50',
  '/usage?by=model&per_day=true&limit=50',
  '/workload-identity/audit/counts?per=hour',
  '/workload-identity/audit/counts?per=day',
  '/workload-identity/findings?installation=true',
  '/keys?contains=9999&limit=50',
  '/workload-identity/policies?contains=9999&limit=50&counts=true',
])
  await time(path)

/** What open pages ask, in the pace in which they do; the browser runs on another machine. */
async function usePages(): Promise<void> {
  const end = performance.now() + loadMilliseconds
  const ask = async (path: string) =>
    void (await (await fetch(baseUrl + path, { headers: { authorization: `Bearer ${management}` } })).text())
  const views = [
    ['/workload-identity/findings?installation=true', '/workload-identity/audit/counts?per=hour', '/usage?by=day'],
    ['/keys?limit=50', '/keys?contains=9&limit=50', '/keys?contains=99&limit=50', '/keys?contains=999&limit=50'],
    [
      '/workload-identity/policies?limit=50&counts=true',
      '/workload-identity/policies?contains=999&limit=50&counts=true',
    ],
    ['/usage?by=key&per_day=true&limit=50'],
  ]
  for (let turn = 0; performance.now() < end; turn++) {
    await Promise.all((views[turn % views.length] ?? []).map(ask))
    await Bun.sleep(1_000)
  }
}

await load()
const [alone, beside]: [number[], number[]] = [[], []]
await page.goto('about:blank')
for (let phase = 0; phase < phases; phase++) {
  alone.push(...(await load()))
  const [times] = await Promise.all([load(), usePages()])
  beside.push(...times)
}
for (const [name, times] of [
  ['inference alone', alone],
  ['inference while somebody uses the page', beside],
] as const)
  show(
    name,
    `p50 ${quantile(times, 0.5).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(2)} ms, ${times.length} requests`,
  )
show('p99 beside alone', `${((quantile(beside, 0.99) / quantile(alone, 0.99) - 1) * 100).toFixed(0)} %`)
await browser.close()
await stop()
await upstream.stop()
process.exit(0)
