// Ten views as pictures, so that type and spacing stay: the files of the page with fixed data, a fixed clock, and no server. What differs is
// named with its place; test/support/pictures.ts says how to make new pictures.
import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { BrowserContext, Route } from 'playwright-core'
import { readMarkdown } from '../../src/manual/markdown.ts'
import { topics } from '../../src/manual/topics.ts'
import { assets } from '../../src/page/assets.ts'
import { fonts } from '../../src/page/fonts.ts'
import * as data from '../fixtures/page-data.ts'
import { closePagesAfterAll, hasChromium, openBrowser } from '../support/browser.ts'
import { createComparison } from '../support/pictures.ts'

closePagesAfterAll()

const origin = 'http://latchkey.test'
const types: Record<string, string> = {
  css: 'text/css',
  html: 'text/html',
  js: 'text/javascript',
  svg: 'image/svg+xml',
}

const list = (rows: readonly unknown[]) => ({ data: rows, total_count: rows.length })

/** What the API would return. */
function respond({ pathname, searchParams }: URL): unknown {
  const path = pathname.replace('/v1', '')
  if (searchParams.has('after_id')) return list([])
  if (path === '/admin/session') return { data: data.session }
  const [, topic] = /^\/admin\/manual\/(\w+)$/.exec(path) ?? []
  if (topic !== undefined) return readMarkdown(topics.get(topic) ?? '')
  if (path === '/workload-identity/findings') return { data: data.findings }
  if (path === '/workload-identity/audit/counts') return data.counts
  if (path === '/workload-identity/audit/changes') return list(data.changes)
  if (path === '/workload-identity/audit') return list(data.exchanges)
  if (path.startsWith('/workload-identity/audit/')) return { data: { kind: 'exchange', ...data.exchanges[1] } }
  if (path === '/workload-identity/policies') return list(data.policies)
  if (path === '/workload-identity/policies/lint')
    return { data: data.policies.map(({ id }) => ({ policy_id: id, findings: [] })) }
  if (path.startsWith('/workload-identity/policies/')) return { data: data.policies[0] }
  if (path === '/keys') return list(data.keys)
  if (path === '/usage') return data.usageBy(searchParams.get('by') ?? 'key')
  if (path === '/usage/refused') return { data: [], since: new Date(data.noon - 2 * 86_400_000).toISOString() }
  if (path === '/usage/requests') return { ...list(data.requests), more_before_id: null }
  return {}
}

function serve(route: Route): Promise<void> {
  const url = new URL(route.request().url())
  const name = url.pathname === '/admin/' ? 'index.html' : url.pathname.replace('/admin/assets/', '')
  const font = fonts.get(name)
  if (font !== undefined) return route.fulfill({ body: Buffer.from(font), contentType: 'font/woff2' })
  const text = assets.get(name)
  if (text !== undefined) return route.fulfill({ body: text, contentType: types[name.split('.').at(-1) ?? ''] ?? '' })
  if (url.pathname === '/v1/admin/revision') return route.fulfill({ status: 304, headers: { etag: '"1"' } })
  return route.fulfill({ json: respond(url) })
}

const { id } = data.policies[0] ?? { id: '' }
const views: [name: string, hash: string, shows: string][] = [
  ['overview', '#/overview', 'Needs attention'],
  ['policies', '#/policies', 'billing-eval'],
  ['policy', `#/policies/${id}`, 'Exchanges in the last'],
  ['rules', `#/policies/${id}?tab=rules`, 'Audience'],
  ['exchanges', '#/exchanges', 'audience_mismatch'],
  ['exchange', `#/exchanges/${data.exchanges[1]?.request_id}`, 'Refused at the step'],
  ['keys', '#/keys', 'growth-prod'],
  ['requests', '#/requests', 'upstream_unreachable'],
  ['usage', '#/usage', 'Tokens per day'],
  ['changes', '#/changes', 'policies.create'],
]

describe.skipIf(!hasChromium)('pictures (need chromium)', () => {
  let context: BrowserContext
  beforeAll(async () => {
    const shape = { viewport: { width: 1_280, height: 720 }, timezoneId: 'UTC', locale: 'en-US' }
    context = await openBrowser({ ...shape, colorScheme: 'light', reducedMotion: 'reduce' })
    context.setDefaultTimeout(10_000)
  })

  test('ten views look as they did when somebody looked at them', async () => {
    const compare = await createComparison(context, join(import.meta.dirname, 'pictures'))
    const page = await context.newPage()
    const problems: string[] = []
    page.on('pageerror', (error) => problems.push(String(error)))
    await page.route(`${origin}/**`, serve)
    await page.clock.setFixedTime(data.noon)
    await page.goto(`${origin}/admin/`)
    const found: string[] = []
    for (const [name, hash, shows] of views) {
      await page.evaluate((to) => location.assign(to), hash)
      expect(problems).toEqual([])
      await page.locator('main').getByText(shows).filter({ visible: true }).first().waitFor()
      await page.locator('.loading').first().waitFor({ state: 'detached' })
      await page.evaluate('(async () => { await document.fonts.ready; document.activeElement.blur() })()')
      found.push(await compare(page, name))
    }
    expect(problems).toEqual([])
    expect(found.filter((text) => text !== '')).toEqual([])
  }, 60_000)
})
