// The admin page for people whom an identity provider signs in: the choices, who is signed in and why, and what each role finds (needs
// chromium).
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mayDo } from '../../src/keys/roles.ts'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { type OpenedPage, openAdminPage } from '../support/opened-page.ts'
import { type PagePeople, startPagePeople } from '../support/page-people.ts'

closePagesAfterAll()

/** What changes something in each view, and the act that it needs. */
const buttons = [
  ['#/keys', 'Keys', 'link', 'Create key', 'keys.create'],
  ['#/budgets', 'Budgets', 'link', 'Create budget', 'budgets.create'],
  ['#/policies', 'Policies', 'link', 'New policy', 'policies.create'],
  ['#/issuers', 'Issuers', 'link', 'Add issuer', 'issuers.add'],
  ['#/webhooks', 'Alerts', 'link', 'Add webhook', 'webhooks.add'],
  ['#/system', 'System', 'button', 'Sign out everywhere', 'sessions.end'],
  ['#/system', 'System', 'button', 'Rotate', 'signing_keys.rotate'],
] as const

describe.skipIf(!hasChromium)('the admin page for people (needs chromium)', () => {
  let people: PagePeople
  let page: OpenedPage
  const signedIn = () => page.getByRole('region', { name: 'Signed in' })
  const go = async (hash: string, title: string) => {
    await page.evaluate((to) => location.assign(to), hash)
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
  }
  const signIn = async (role: string) => {
    people.provider.people.set('ada', { email: 'ada@example.com', groups: [role] })
    // The provider remembers who signed in before.
    await page.context().clearCookies()
    await page.goto(people.pageUrl)
    await page.getByRole('link', { name: 'Continue with staff' }).click()
    await signedIn().getByText('ada@example.com').waitFor()
  }

  beforeAll(async () => {
    people = await startPagePeople()
    await people.reset()
    page = await openAdminPage(people.latchkey)
  })
  beforeEach(() => people.reset())
  afterAll(() => people.stop())

  test('offers the identity provider first, and a key behind it', async () => {
    await page.getByRole('link', { name: 'Continue with staff' }).waitFor()
    expect(await page.getByLabel('Management key').isVisible()).toBe(false)
    await page.getByText('Sign in with a management key').click()
    expect(await page.getByLabel('Management key').isVisible()).toBe(true)
  })

  test('says what to do to a person whom no policy lets in, and keeps nothing of it in the address', async () => {
    people.provider.who = 'eve'
    await page.getByRole('link', { name: 'Continue with staff' }).click()
    await page.getByText('no policy lets you in').waitFor()
    expect(page.url()).toBe(`${people.pageUrl}#/`)
    expect(await people.sessions()).toEqual([])
  })

  test('shows who is signed in, by whom and why, what the role may do, and the sessions of people', async () => {
    await signIn('operator')
    await signedIn().getByText('operator', { exact: true }).waitFor()
    await go('#/system', 'System')
    await page.getByText(people.provider.issuerUrl).first().waitFor()
    const policy = page.getByRole('link', { name: 'operator', exact: true })
    expect(await policy.getAttribute('href')).toMatch(/^#\/policies\/[\w-]{36}$/)
    await page.getByText('What the role operator may do').click()
    const acts = await page.locator('.operations code').allTextContents()
    expect([acts.includes('keys.create'), acts.includes('issuers.add')]).toEqual([true, false])
    const row = page.getByRole('table', { name: 'Sessions of this page' }).getByRole('row').filter({ hasText: 'ada@' })
    expect(await row.textContent()).toMatch(/this one.*policy operator.*operator/s)
  })

  // Other files press every button as an admin.
  for (const role of ['viewer', 'operator'] as const)
    test(`shows a person with the role ${role} what the role may do, and no other button`, async () => {
      await signIn(role)
      const wrong: string[] = []
      for (const [hash, title, kind, name, act] of buttons) {
        await go(hash, title)
        await page.locator('.loading').waitFor({ state: 'detached' })
        const button = page.locator('main').getByRole(kind, { name, exact: true }).first()
        if (mayDo(role, act)) await button.waitFor()
        else if ((await button.count()) > 0) wrong.push(name)
      }
      expect(wrong).toEqual([])
    })

  test('leads a session that the provider ended back to the choices', async () => {
    await signIn('viewer')
    for (const { id } of await people.sessions()) await people.latchkey.admin('sessions.end', { session: id })
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await page.getByText('Your session has ended').waitFor()
    await page.getByRole('link', { name: 'Continue with staff' }).waitFor()
  })

  test('nothing failed meanwhile, and nothing but the provider was asked', () => {
    expect(page.problems.filter((each) => !each.startsWith(`request to ${people.provider.issuerUrl}/`))).toEqual([])
  })
})
