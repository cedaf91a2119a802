// A live session in a real browser, and other sites that try to use it: by form, fetch, image, frame and window (needs chromium). The pages
// are closed with the browser: closing one after a form was sent sometimes never ends.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { BrowserContext, Page } from 'playwright-core'
import { closePagesAfterAll, hasChromium, openBrowser } from '../support/browser.ts'
import { listenLocally, type Row, startTestServer, type TestServer } from '../support/latchkey.ts'

describe.skipIf(!hasChromium)('a session in Chromium (needs chromium)', () => {
  let latchkey: TestServer
  let evil: Awaited<ReturnType<typeof listenLocally>>
  let context: BrowserContext
  let page: Page
  let sessionCookie: string
  const problems: string[] = []
  closePagesAfterAll({ withBrowser: true })
  beforeAll(async () => {
    latchkey = await startTestServer()
    evil = await listenLocally(async () => new Response('<!doctype html><title>evil</title>', { headers: html }))
    const { url } = await latchkey.admin<Row & { url: string }>('sessions.link')
    context = await openBrowser()
    page = await context.newPage()
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().includes('401')) problems.push(message.text())
    })
    page.on('pageerror', (error) => problems.push(String(error)))
    await page.goto(url)
    await page.waitForFunction(
      () => document.querySelector('.sign-in') === null && document.querySelector('main') !== null,
    )
    const [cookie] = await context.cookies()
    sessionCookie = `${cookie?.name}=${cookie?.value}`
  })
  afterAll(async () => {
    await evil.listener.drain()
    await latchkey.stop()
  })
  const html = { 'content-type': 'text/html' }
  /** Another site, on another port and under another name. */
  const evilUrl = () => evil.url.replace('127.0.0.1', 'localhost')
  const api = () => latchkey.server.baseUrl
  /** What the server refused for want of a credential. */
  const refusals = () => latchkey.logLines.filter((line) => line.includes('"status":401'))
  const issuers = async () => (await latchkey.admin<{ data: Row[] }>('issuers.list')).data.length
  const keysIn = () => page.evaluate(async (url) => (await fetch(`${url}/keys`)).status, api())

  test('begins with a link, without a problem in the console, and no script reads its cookie', async () => {
    expect(problems).toEqual([])
    expect(await page.evaluate(() => document.cookie)).toBe('')
    expect(page.url()).not.toContain('link=')
    const [cookie] = await context.cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/' })
    expect(await keysIn()).toBe(200)
  })

  test('is not there for a link that was used, and still is for the browser', async () => {
    const { url } = await latchkey.admin<Row & { url: string }>('sessions.link')
    const first = await openBrowser()
    const opened = await first.newPage()
    await opened.goto(url)
    await opened.waitForFunction(() => document.querySelector('main') !== null)
    const second = await openBrowser()
    const replayed = await second.newPage()
    const refused = replayed.waitForResponse((response) => response.request().method() === 'POST')
    await replayed.goto(url)
    expect((await refused).status()).toBe(401)
    expect(await second.cookies()).toEqual([])
  })

  test('is not used by a form of another port of the same host, to which the browser sends the cookie', async () => {
    const other = await context.newPage()
    await other.goto(evil.url)
    const answered = other.waitForResponse((response) => response.url().startsWith(api()))
    await other.evaluate((action) => {
      const form = document.createElement('form')
      form.method = 'POST'
      form.enctype = 'text/plain'
      form.action = action
      const field = document.createElement('input')
      field.name = '{"name":"evil","issuer_url":"https://evil.example","x":"'
      field.value = '"}'
      form.append(field)
      document.body.append(form)
      // After the response to this call, which would be lost with the document.
      setTimeout(() => form.submit())
    }, `${api()}/workload-identity/issuers`)
    expect((await answered).status()).toBe(401)
    expect(await issuers()).toBe(0)
  })

  for (const site of ['another site', 'another port of the same host'])
    test(`is not used by fetch, images and scripts of ${site}`, async () => {
      const other = await context.newPage()
      await other.goto(site === 'another site' ? evilUrl() : evil.url)
      const before = refusals().length
      const statuses: number[] = []
      other.on('response', (response) => {
        if (response.url().startsWith(api())) statuses.push(response.status())
      })
      await other.evaluate(async (base) => {
        const body = JSON.stringify({ name: 'evil', issuer_url: 'https://evil.example' })
        const send = (init: RequestInit) =>
          fetch(`${base}/workload-identity/issuers`, { credentials: 'include', ...init }).catch(() => {})
        await send({ mode: 'no-cors' })
        await send({ mode: 'cors' })
        await send({ method: 'POST', mode: 'no-cors', body })
        await send({ method: 'POST', headers: { 'content-type': 'application/json' }, body })
        for (const kind of ['img', 'script'] as const) {
          const element = document.createElement(kind)
          element.src = `${base}/keys`
          const loaded = new Promise((resolve) => {
            element.onload = element.onerror = resolve
          })
          document.body.append(element)
          await loaded
        }
      }, api())
      // The cross-origin request with JSON is refused before it is sent: its preflight has no response that allows it.
      expect(statuses.filter((status) => ![401, 405].includes(status))).toEqual([])
      expect(refusals().length - before).toBeGreaterThanOrEqual(4)
      expect(await issuers()).toBe(0)
    })

  test('is not shown in a frame of another site', async () => {
    const other = await context.newPage()
    await other.goto(evilUrl())
    await other.evaluate((src) => {
      const frame = document.createElement('iframe')
      frame.src = src
      const loaded = new Promise((resolve) => {
        frame.onload = resolve
      })
      document.body.append(frame)
      return loaded
    }, latchkey.server.pageUrl ?? '')
    const frame = other.frames().find((each) => each !== other.mainFrame())
    expect(frame?.url() ?? '').not.toContain('/admin/')
  })

  test('is out of reach of another site that opened the page in a window', async () => {
    const other = await context.newPage()
    await other.goto(evilUrl())
    const opening = context.waitForEvent('page')
    await other.evaluate((url) => {
      Object.assign(window, { opened: window.open(url) })
    }, latchkey.server.pageUrl ?? '')
    const opened = await opening
    await opened.waitForLoadState()
    const hasOpener = await opened.evaluate(() => window.opener !== null)
    expect(hasOpener).toBe(false)
    // The opener learns it a moment after the page has loaded.
    await other.waitForFunction(() => (window as unknown as { opened: Window | null }).opened?.closed ?? true)
  })

  test('does not survive a sign-out, not even for who copied the cookie', async () => {
    const copied = () => fetch(`${api()}/keys`, { headers: { cookie: sessionCookie, 'sec-fetch-site': 'same-origin' } })
    expect((await copied()).status).toBe(200)
    const status = await page.evaluate(
      async (url) => (await fetch(`${url}/admin/session`, { method: 'DELETE' })).status,
      api(),
    )
    expect(status).toBe(200)
    expect(await context.cookies()).toEqual([])
    expect((await copied()).status).toBe(401)
    expect(await keysIn()).toBe(401)
  })

  test('asked for nothing outside of the server', () => {
    expect(problems.filter((text) => /Content Security Policy|Trusted/.test(text))).toEqual([])
  })
})
