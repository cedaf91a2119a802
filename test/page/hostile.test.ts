// What somebody pastes, types into the address, or leaves too early must not break the admin page or stay behind in it (needs chromium).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Route } from 'playwright-core'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'
import { type OpenedPage, openAdminPage } from '../support/opened-page.ts'

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: TestServer
  let page: OpenedPage
  let key: Row & { key: string }
  const go = (hash: string) => page.evaluate((to) => location.assign(to), hash)
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const textOf = () => page.evaluate(() => document.documentElement.textContent ?? '')

  beforeAll(async () => {
    latchkey = await startTestServer()
    key = await latchkey.admin('keys.create', { name: 'boss', kind: 'management' })
    page = await openAdminPage(latchkey, { key: key.key, hash: '#/manual' })
    await heading('Client recipes')
  })
  afterAll(() => latchkey.stop())

  /** Holds requests for a path until the returned function is called. */
  async function hold(pattern: string) {
    const asked = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    await page.route(pattern, async (route: Route) => {
      asked.resolve()
      await released.promise
      await route.continue()
    })
    const answered = page.waitForResponse(pattern)
    return {
      asked: asked.promise,
      release: async () => {
        released.resolve()
        await (await answered).finished()
        await page.unroute(pattern)
      },
    }
  }

  test('a view that was left before its module arrived asks for nothing', async () => {
    const held = await hold('**/assets/keys.js')
    await go('#/keys')
    await held.asked
    await go('#/try')
    await heading('Try a token')
    const paths: string[] = []
    page.on('request', (request) => paths.push(new URL(request.url()).pathname))
    await held.release()
    // Its own import waits for the same module.
    await page.evaluate(() => import(new URL('assets/keys.js', location.href).href))
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    expect(paths.filter((path) => path.endsWith('/v1/keys'))).toEqual([])
  })

  test('a view that was left before its data arrived does not take the place of the next one', async () => {
    const held = await hold('**/v1/keys/*')
    await go(`#/keys/${String(key.hash)}`)
    await held.asked
    await go('#/try')
    await heading('Try a token')
    await held.release()
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)))
    await heading('Try a token')
    await page.getByLabel('Token (JWT)').waitFor()
  })

  test('pasted texts that only look like a token are shown or refused', async () => {
    const token = page.getByLabel('Token (JWT)')
    const payload = (value: unknown) => `e30.${btoa(JSON.stringify(value))}.`
    for (const text of ['e30', 'W10.W10', payload(null), payload('x')]) {
      await token.fill(text)
      await page.getByText('This is not a JWT').waitFor()
    }
    for (const exp of [1e20, -1e15, '1']) {
      await token.fill(payload({ exp, ['__proto__']: 1 }))
      await page
        .getByRole('group', { name: 'payload' })
        .filter({ hasText: String(exp) })
        .waitFor()
    }
  })

  test('an address that somebody made up opens the view as it is without it', async () => {
    for (const query of ['days=abc', 'days=1e9', 'by=__proto__&show=constructor']) {
      await go(`#/usage?${query}`)
      await page.getByText('No usage in this time').waitFor()
      expect(await page.getByLabel('Time').inputValue()).toBe('30')
    }
  })

  test('a name in what to do is no link', async () => {
    const action = "latchkey issuers refresh '[click](https://evil.example)' **now**"
    const finding = { level: 'error', area: 'issuers', code: 'issuer_fetch_failed', message: 'old', names: [], action }
    await page.route('**/findings?*', (route) => route.fulfill({ json: { data: { findings: [finding] } } }))
    await go('#/overview')
    await page.getByText('As a command').click()
    expect(await page.getByRole('group', { name: 'command' }).textContent()).toContain(action)
    await page.unroute('**/findings?*')
  })

  test('a finding leads to what it is about, whatever command its action names first', async () => {
    const action = 'latchkey keys enable KEY, or: latchkey policies disable POLICY'
    const finding = {
      level: 'error',
      area: 'policies',
      code: 'policy_key_disabled',
      message: 'old',
      names: ['ci'],
      action,
      operation: 'keys.enable',
    }
    await page.route('**/findings?*', (route) => route.fulfill({ json: { data: { findings: [finding] } } }))
    await go('#/overview?')
    const link = page.getByRole('link', { name: 'Enable its key' })
    expect(await link.getAttribute('href')).toBe('#/policies/ci')
    await page.getByText('As a command').click()
    expect(await page.getByRole('group', { name: 'command' }).textContent()).toContain(action)
    await page.unroute('**/findings?*')
  })

  test('a check that a finding offers says a failure as one, with the name of what failed', async () => {
    const [about, names] = [{ level: 'error', message: 'old', action: 'Look at it' }, ['gpu-2']]
    const findings = [
      { ...about, area: 'upstreams', code: 'upstream_failing', operation: 'upstreams.check', names },
      { ...about, area: 'webhooks', code: 'webhook_failing', operation: 'webhooks.test', names: ['ops'] },
    ]
    const failed = { ok: false, problem: 'nothing listens there' }
    await page.route('**/findings?*', (route) => route.fulfill({ json: { data: { findings } } }))
    await page.route('**/upstreams/gpu-2/check', (route) => route.fulfill({ json: { data: [failed] } }))
    await page.route('**/webhooks/ops/test', (route) => route.fulfill({ json: { data: failed } }))
    await go('#/policies')
    await go('#/overview')
    for (const [label, says] of [
      ['Check gpu-2', 'gpu-2 fails: nothing listens there'],
      ['Test ops', 'The test event did not arrive: nothing listens there'],
    ] as const) {
      await page.getByRole('button', { name: label }).click()
      await page.getByRole('alert').getByText(says).waitFor()
    }
    await page.unrouteAll()
  })

  test('a budget of keys leads to the keys: each has a button that opens its form, and the health leads there too', async () => {
    const about = { level: 'error', message: 'spent', action: 'latchkey keys update KEY', count: 5 }
    const spent = {
      ...{ ...about, area: 'budgets', code: 'budget_spent', operation: 'keys.update' },
      names: ['boss', 'k2', 'k3', 'k4', 'k5'],
    }
    const idle = {
      ...{ ...about, area: 'policies', code: 'policy_never_issued', operation: 'policies.check' },
      names: ['p1', 'p2'],
    }
    await page.route('**/findings?*', (route) => route.fulfill({ json: { data: { findings: [spent, idle] } } }))
    await go('#/keys')
    await go('#/overview')
    const health = page.getByRole('navigation', { name: 'Health' }).getByRole('link', { name: 'Budgets' })
    await page.getByRole('link', { name: 'Show them' }).waitFor()
    expect(await health.getAttribute('href')).toBe('#/keys')
    const link = page.getByRole('link', { name: 'Show them' })
    expect(await link.getAttribute('href')).toBe('#/policies?unused=never')
    // What counts today leads to what was counted.
    const requests = await page.locator('.tiles a').filter({ hasText: 'Inference requests' }).getAttribute('href')
    expect(requests).toContain('time=range')
    await page.getByText('2 more').click()
    for (const name of spent.names) expect(await page.getByRole('button', { name: `Edit ${name}` }).count()).toBe(1)
    await page.getByRole('button', { name: 'Edit boss' }).click()
    await page.getByRole('heading', { level: 1, name: 'Edit key' }).waitFor()
    await page.unroute('**/findings?*')
  })

  test('models and subjects are no formulas in the CSV, in spreadsheets of any language', async () => {
    const [sums, total] = [
      { requests: 1, prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost: 0, requests_without_cost: 1 },
      4,
    ]
    const data = ['=1', '\t@x', 'a;=1', '＝1'].map((model) => ({ model, ...sums }))
    const [since, until] = ['2026-11-01', '2026-11-22']
    const json = { data, by: 'model', since, until, counted_since: since, total: sums, total_count: total }
    await page.route('**/v1/usage?*', (route) => route.fulfill({ json }))
    await go('#/usage?by=model')
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download CSV' }).click()
    const lines = readFileSync(await (await downloading).path(), 'utf8').split('\r\n')
    await page.unroute('**/v1/usage?*')
    // Its cost is unknown, which is not nothing.
    const cells = lines.slice(1, -1).map((line) => line.replace(/,1,1,1,2,,1$/, ''))
    expect(cells).toEqual(["'=1", '"\'\t\'@x"', '"a;\'=1"', "'＝1"])
  })

  test('a link signs in although there is a session, and the other tabs show who they act as now', async () => {
    const linkOf = async (input: Record<string, unknown>) =>
      (await latchkey.admin<Row & { url: string }>('sessions.link', input)).url
    const other = await page.context().newPage()
    const signedIn = page.getByRole('region', { name: 'Signed in' })
    await go('#/try')
    await page.getByLabel('Token (JWT)').waitFor()
    await other.goto(await linkOf({ key: 'boss', read_only: true }))
    await signedIn.getByText('viewer').waitFor()
    await other.close()
    await page.goto(await linkOf({ key: 'boss' }))
    await signedIn.getByText('viewer').waitFor({ state: 'detached' })
    await signedIn.getByText('admin', { exact: true }).waitFor()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  })

  test('identity providers that are known only after somebody signed in leave the view as it is', async () => {
    const held = await hold('**/admin/sign-in')
    const { url } = await latchkey.admin<Row & { url: string }>('sessions.link', { key: 'boss' })
    await page.goto(url)
    await held.asked
    await heading('Overview')
    await held.release()
    await page.evaluate(() => new Promise(requestAnimationFrame))
    await heading('Overview')
    expect(await page.getByLabel('Management key').count()).toBe(0)
  })

  test('a late response to a request of the session before does not sign out the new one', async () => {
    const asked = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    await page.route('**/v1/keys?*', async (route: Route) => {
      asked.resolve()
      await released.promise
      await route.fulfill({ status: 401, json: { error: { code: 401, message: 'No such session' } } })
    })
    await go('#/keys')
    await asked.promise
    const { url } = await latchkey.admin<Row & { url: string }>('sessions.link', { key: 'boss' })
    await page.goto(url)
    await heading('Overview')
    const answered = page.waitForResponse('**/v1/keys?*')
    released.resolve()
    await (await answered).finished()
    await page.unroute('**/v1/keys?*')
    await page.evaluate(() => new Promise(requestAnimationFrame))
    await heading('Overview')
    expect(await page.getByText('Your session has ended').count()).toBe(0)
  })

  test('a secret that is shown once is gone when the page is left or kept by the browser', async () => {
    for (const leave of ['pagehide', 'sign-out elsewhere']) {
      await go('#/keys/new')
      await page.getByLabel('Name', { exact: true }).fill(leave)
      await page.getByRole('button', { name: 'Create key' }).click()
      const secret = page.getByRole('group', { name: 'key' })
      await secret.filter({ hasText: /sk-lk-v1-[0-9a-f]{64}/ }).waitFor()
      if (leave === 'pagehide')
        await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })))
      else {
        await latchkey.admin('keys.disable', { keys: ['boss'] })
        await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
        await page.getByText('Your session has ended').waitFor()
      }
      await secret.waitFor({ state: 'detached' })
      expect(await textOf()).not.toMatch(/sk-lk-v1-[0-9a-f]{64}/)
      // The form goes on to its key only now; a link that is followed before would be left again.
      if (leave === 'pagehide') await heading(leave)
    }
  })

  test('it loads again when the browser had kept it', async () => {
    const loaded = page.waitForEvent('load')
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })))
    await loaded
    await page.getByLabel('Management key').waitFor()
  })

  test('nothing failed meanwhile', () => {
    expect(page.problems).toEqual([])
  })
})
