// Every view of workload identity for everybody: no barriers in light, dark and on 320 pixels, and hostile texts shown as text.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closeBrowserAfterAll, hasChromium } from '../support/browser.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { findBarriers, type OpenedPage, openAdminPage, overflowOf } from '../support/opened-page.ts'

/** Dark has other colors and nothing else. */
const looks = [
  { look: 'light', colorScheme: 'light', width: 1280, rules: undefined },
  { look: 'dark', colorScheme: 'dark', width: 1280, rules: ['color-contrast'] },
  { look: '320 pixels', colorScheme: 'light', width: 320, rules: undefined },
] as const
/** Markup, a script, an override of the direction that would swallow what follows, and a word without end. */
const hostile = `</bdi><img src=x onerror=alert(1)><script>alert(1)</script>\u202egnp.\u2066exe ${'W'.repeat(200)}`

closeBrowserAfterAll()

describe.skipIf(!hasChromium)('the views (needs chromium)', () => {
  let latchkey: Federation
  let key: string
  let views: Record<string, string>
  beforeAll(async () => {
    latchkey = await startFederation()
    key = (await latchkey.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })).key
    // Names have no control characters, but may read from right to left.
    const name = `<script>alert(1)</script> שלום ${'W'.repeat(60)}`
    const condition = `claims.note == ${JSON.stringify(hostile)} && claims.repository_id == "1"`
    const evil = await latchkey.admin('policies.create', {
      ...{ name, issuer: 'idp', key: 'target', audience: hostile, condition },
      tests: [{ name, claims: { note: hostile }, expect: 'condition_error' }],
    })
    await latchkey.exchange(await latchkey.mint())
    const refused = await latchkey.exchange(await latchkey.mint({ sub: hostile }))
    const { request_id: requestId } = (await refused.json()) as { request_id: string }
    views = {
      'Get started': '#/start',
      Policies: '#/policies',
      policy: `#/policies/${latchkey.policy.id}`,
      [name]: `#/policies/${evil.id}`,
      'New policy': '#/policies/new',
      'Edit policy': `#/policies/${evil.id}/edit`,
      Issuers: '#/issuers',
      idp: `#/issuers/${latchkey.issuer.id}`,
      'Add issuer': '#/issuers/new',
      'Try a token': '#/try',
      Exchanges: '#/exchanges',
      Exchange: `#/exchanges/${requestId}`,
      'Policies and conditions': '#/manual/policies',
    }
  })
  afterAll(async () => {
    await latchkey.stop()
  })

  const show = async (page: OpenedPage, hash: string) => {
    await page.evaluate((to) => location.assign(to), hash)
    await page.locator('.view > :not(.loading)').first().waitFor()
    await page.locator('.loading').first().waitFor({ state: 'detached' })
  }

  const examine = async (page: OpenedPage, title: string) => {
    for (const { look, colorScheme, width, rules } of looks) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      const found = { title, look, barriers: await findBarriers(page, rules), overflow: await overflowOf(page) }
      expect(found).toEqual({ title, look, barriers: [], overflow: 0 })
    }
  }

  test('have no barriers and fit: light, dark, and on 320 pixels', async () => {
    const page = await openAdminPage(latchkey, { reducedMotion: 'reduce' })
    await page.getByLabel('Management key').waitFor()
    await examine(page, 'Sign in')
    await page.getByLabel('Management key').fill(key)
    await page.keyboard.press('Enter')
    await page.locator('#title').waitFor()
    for (const [title, hash] of Object.entries(views)) {
      await show(page, hash)
      if (title === 'Try a token') {
        await page
          .getByLabel('Token (JWT)')
          .fill(await latchkey.mint({ note: hostile + 'x'.repeat(9_000), aud: hostile }))
        await page.getByRole('button', { name: 'Check the token' }).click()
        await page.getByText('would be refused').first().waitFor()
      }
      await examine(page, title)
    }
    await page.getByRole('button', { name: 'Menu' }).click()
    await examine(page, 'the menu')
    expect(page.problems).toEqual([])
    await page.context().close()
  }, 60_000)

  test('show hostile texts as text, whose direction turns nothing around them', async () => {
    const page = await openAdminPage(latchkey, { key })
    for (const hash of Object.values(views)) {
      await show(page, hash)
      expect(await page.locator('main img, main script').count()).toBe(0)
      // A field holds the text as it is stored.
      const text = await page.locator('main').evaluate((main) => main.textContent ?? '')
      expect(/[\u202a-\u202e\u2066-\u2069]/.test(text)).toBe(false)
    }
    await show(page, '#/exchanges')
    await page.getByText('<script>alert(1)</script>‹U+202E›gnp.').first().waitFor()
    expect(page.problems).toEqual([])
  })

  test('say why nothing can be exchanged without the entitlement', async () => {
    await latchkey.admin('organizations.plan', { organization: 'default', plan: 'free' })
    const page = await openAdminPage(latchkey, { key, hash: '#/policies' })
    await page.getByText('No token can be exchanged.').waitFor()
    expect(page.problems).toEqual([])
  })
})
