// The admin page, open in the browser of a test file. Everything that must never happen is collected while the page runs: violations of
// the content security policy, errors in the console, and requests to other hosts.
import { readFileSync } from 'node:fs'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { signIn } from './admin-page.ts'
import { openBrowser } from './browser.ts'
import type { TestServer } from './latchkey.ts'

export type OpenedPage = Page & { problems: string[] }
export type Opening = BrowserContextOptions & { key?: string; link?: string; hash?: string }

/** Opens the admin page, and signs in where there is a key or a link: with a link as a person does, with a key before the page opens. */
export async function openAdminPage(latchkey: TestServer, opening: Opening = {}): Promise<OpenedPage> {
  const { key, link, hash = '', ...options } = opening
  const { origin } = new URL(latchkey.server.baseUrl)
  const context = await openBrowser({ viewport: { width: 1280, height: 900 }, ...options })
  context.setDefaultTimeout(20_000)
  const page: OpenedPage = Object.assign(await context.newPage(), { problems: [] as string[] })
  watch(page, origin)
  if (key !== undefined) {
    const [name = '', value = ''] = (await signIn(latchkey, { api_key: key })).split('=')
    await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Strict' }])
  }
  await page.goto(`${origin}/admin/${link === undefined ? hash : `#link=${link}`}`)
  if (key !== undefined || link !== undefined) await page.locator('#navigation').waitFor({ state: 'attached' })
  return page
}

/** The browser itself reports a response with status 400 or more as an error, which is no error of the page. */
function watch(page: OpenedPage, origin: string): void {
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !message.text().startsWith('Failed to load resource'))
      page.problems.push(message.text())
  })
  page.on('pageerror', (error) => page.problems.push(String(error)))
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) page.problems.push(`request to ${request.url()}`)
  })
}

/** Chooses in a field that searches by name. */
export async function pick(page: Page, label: string, name: string): Promise<void> {
  await page.getByRole('combobox', { name: label, exact: true }).fill(name)
  await page.getByRole('option', { name }).first().click()
}

const axe = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

type Violation = { id: string; nodes: { target: string[]; failureSummary?: string }[] }

/** What axe-core finds on the page or `within` a part of it, by these rules or all, one line for each element. */
export async function findBarriers(page: Page, rules?: readonly string[], within?: string): Promise<string[]> {
  // Evaluated by the debugger, so the content security policy of the page stays as it is.
  const hasAxe = await page.evaluate('"axe" in window')
  if (hasAxe !== true) await page.evaluate(`${axe};undefined`)
  // Without style sheets of other origins, which the page has none of.
  const options = { resultTypes: ['violations'], preload: false, ...(rules === undefined ? {} : { runOnly: rules }) }
  const call = `axe.run(${JSON.stringify(within) ?? 'document'}, ${JSON.stringify(options)})`
  const violations = (await page.evaluate(`${call}.then(({ violations }) => violations)`)) as Violation[]
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ target, failureSummary = '' }) => `${id} at ${target.join(' ')}: ${failureSummary.replaceAll(/\s+/g, ' ')}`,
    ),
  )
}

/** How far the page is wider than the window, in pixels. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
}
