// What lists and reports of the page show in a real browser: rows that stay the same rows, filters that apply, unknown costs, a connection that
// goes and comes, a secret that stays until it was copied, and texts that are too long.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { type OpenedPage, openAdminPage } from '../support/opened-page.ts'

type Key = Row & { key: string; hash: string }

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Federation
  let page: OpenedPage
  const go = (hash: string) => page.evaluate((to) => location.assign(to), hash)
  /** As when somebody comes back to the tab: it asks at once instead of after its three seconds. */
  const wake = () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const newKey = (name: string, more = {}) => latchkey.admin<Key>('keys.create', { name, ...more })
  const newPolicy = (name: string, more = {}) =>
    latchkey.admin('policies.create', { name, issuer: 'idp', key: 'target', audience: 'a', subject: name, ...more })

  beforeAll(async () => {
    latchkey = await startFederation()
    await latchkey.admin('issuers.add', { name: 'other idp', issuer_url: 'https://sso.example.com', shared: false })
    await newKey('other key')
    await newPolicy('elsewhere', { issuer: 'other idp', key: 'other key' })
    page = await openAdminPage(latchkey, { key: (await newKey('boss', { kind: 'management' })).key })
  })
  afterAll(() => latchkey.stop())

  test('another row is counted and moves nothing until somebody asks for it, and open details stay with their row', async () => {
    await latchkey.admin('keys.update', { key: 'target', requests_per_minute: 77 })
    await go('#/changes?kind=key')
    const row = page.getByRole('row').filter({ hasText: 'requests per minute' }).first()
    await row.locator('summary').click()
    await row.locator('summary').focus()
    await latchkey.admin('keys.update', { key: 'target', tokens_per_minute: 99 })
    await wake()
    const newer = page.getByRole('button', { name: '1 new: show' })
    await newer.waitFor()
    expect(await page.getByText('tokens per minute').count()).toBe(0)
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('requests per minute: none → 77')
    await newer.click()
    await page.getByText('tokens per minute').first().waitFor()
    expect(await newer.count()).toBe(0)
    expect(await page.locator('details[open] > summary').allTextContents()).toEqual(['requests per minute: none → 77'])
    expect(await row.getByRole('link', { name: 'target' }).getAttribute('href')).toBe('#/keys?search=target')
  })

  test('a focused switch stays that of its policy when another row goes', async () => {
    await newPolicy('first')
    await newPolicy('a newcomer')
    await go('#/policies')
    await page.getByRole('switch', { name: 'Enabled: a newcomer' }).focus()
    await latchkey.admin('policies.delete', { policy: 'first' })
    await wake()
    await page.getByRole('link', { name: 'first' }).waitFor({ state: 'detached' })
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Enabled: a newcomer')
    await go('#/changes?kind=policy')
    const deleted = page.getByRole('row').filter({ hasText: 'policies.delete' })
    expect(await deleted.textContent()).toContain('first')
    expect(await deleted.getByRole('link').count()).toBe(0)
  })

  test('a filter of an address that was left is not shown, and rows of another filter do not stay below an error', async () => {
    await latchkey.exchange(await latchkey.mint())
    await go('#/exchanges?reason=subject_mismatch')
    await heading('Exchanges')
    await page.getByText('Nothing matches').waitFor()
    await go('#/exchanges')
    await page.getByRole('cell', { name: 'issued' }).first().waitFor()
    expect(await page.getByLabel('Reason').inputValue()).toBe('')
    await page.route('**/audit?*outcome=refused*', (route) => route.abort())
    await page.getByLabel('Outcome').selectOption('refused')
    await page.getByRole('alert').filter({ hasText: 'The server did not respond' }).waitFor()
    expect(await page.getByRole('cell', { name: 'issued' }).count()).toBe(0)
    await page.unroute('**/audit?*outcome=refused*')
  })

  test('the policies of an issuer and of a key are only those', async () => {
    const names = () => page.locator('tbody th a').allTextContents()
    await go(`#/issuers/${(await latchkey.admin('issuers.show', { issuer: 'other idp' })).id}`)
    await page.getByRole('link', { name: 'Policies of this issuer' }).click()
    await page.getByText('of the issuer other idp').waitFor()
    expect(await names()).toEqual(['elsewhere'])
    for (let number = 0; number < 11; number++) await newPolicy(`many ${number}`, { key: 'other key' })
    await go(`#/keys/${(await latchkey.admin<Key>('keys.show', { key: 'other key' })).hash}`)
    await page.getByRole('link', { name: 'All 12' }).click()
    await page.getByText('that act as the key other key').waitFor()
    await page.getByRole('link', { name: 'many 10' }).waitFor()
    expect(await names()).toHaveLength(12)
    await page.getByRole('link', { name: 'show all' }).click()
    await page.getByRole('link', { name: 'a newcomer' }).waitFor()
  })

  test('usage names its key, and a cost that nobody knows is not $0.00', async () => {
    const response = await fetch(`${latchkey.server.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${latchkey.key.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] }),
    })
    await response.text()
    await go(`#/usage?by=model&key=${latchkey.key.hash}`)
    await page.getByText('Only the key target').waitFor()
    expect(await page.locator('main').textContent()).not.toContain('$0.00')
    await page.getByRole('cell', { name: 'unknown' }).waitFor()
  })

  test('a new policy has no issuer and no key until somebody chooses them', async () => {
    await go('#/policies/new')
    await page.getByLabel('Name', { exact: true }).waitFor()
    for (const name of ['Issuer', 'Acts as key'])
      expect(await page.getByLabel(name, { exact: true }).inputValue()).toBe('')
    await go('#/policies')
    await go(`#/policies/new?issuer=${latchkey.issuer.id}`)
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('#f-issuer')?.value === 'idp')
  })

  test('a policy goes on with an issuer that was added for it, and nothing that was typed is lost', async () => {
    await go('#/policies')
    await go('#/policies/new')
    await page.getByLabel('Name', { exact: true }).fill('deploy docs')
    await page.getByText('GitLab', { exact: true }).click()
    await page.getByRole('link', { name: 'Add this issuer' }).click()
    await heading('Add issuer')
    await page.getByLabel('Name', { exact: true }).fill('lab')
    await page.getByLabel('Issuer URL', { exact: true }).fill('https://gitlab.example.com')
    await button('Add issuer').click()
    await heading('New policy')
    await page.waitForFunction(() => document.querySelector<HTMLInputElement>('#f-issuer')?.value === 'lab')
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('deploy docs')
    await page.evaluate(() => sessionStorage.clear())
    await page.reload()
  })

  test('the card of a platform chooses its issuer where there is one, and another card frees it', async () => {
    const url = 'https://token.actions.githubusercontent.com'
    await latchkey.admin('issuers.add', { name: 'actions', issuer_url: url })
    const chosen = (name: string) =>
      page.waitForFunction((to) => document.querySelector<HTMLInputElement>('#f-issuer')?.value === to, name)
    // Not the form of the test before, which has an issuer.
    await go('#/policies')
    await heading('Policies')
    await go('#/policies/new')
    await heading('New policy')
    await page.getByText('GitHub', { exact: true }).click()
    await chosen('actions')
    expect(await page.getByRole('link', { name: 'Add this issuer' }).count()).toBe(0)
    await page.getByText('GitLab', { exact: true }).click()
    await page.getByRole('link', { name: 'Add this issuer' }).waitFor()
    await chosen('')
    await page.evaluate(() => sessionStorage.clear())
    await page.reload()
  })

  test('what was opened without a connection appears when there is one', async () => {
    await go('#/keys')
    await heading('Keys')
    await page.context().setOffline(true)
    for (const [hash, title] of [
      ['#/issuers/new', 'Add issuer'],
      [`#/policies/${latchkey.policy.id}/edit`, 'Edit policy'],
      ['#/system', 'System'],
    ] as const) {
      await page.context().setOffline(true)
      await go(hash)
      await page.getByText('The server did not respond').or(page.getByLabel('Issuer URL')).first().waitFor()
      await page.context().setOffline(false)
      await heading(title)
      await page.locator('main :is(form, table)').first().waitFor()
      expect(await page.getByText('The server has not responded').count()).toBe(0)
    }
  })

  test('a server that is gone is said in a view that was read before, whose badges are gray until it is back', async () => {
    // What comes to the tab again asks at once, as the timer does every three seconds.
    const ask = () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    const notice = page.getByText('The server has not responded')
    const isGray = () => page.locator('main .stale .badge').count()
    await go(`#/keys/${latchkey.key.hash}`)
    await page.locator('main .badge').first().waitFor()
    expect(await isGray()).toBe(0)
    await page.route('**/v1/**', (route) => route.abort())
    await ask()
    await notice.waitFor()
    expect(await isGray()).toBeGreaterThan(0)
    await button('Disable').click()
    await page.getByRole('dialog').or(page.getByText('The server did not respond')).first().waitFor()
    await page.unroute('**/v1/**')
    await ask()
    await notice.waitFor({ state: 'detached' })
    expect(await isGray()).toBe(0)
    expect(await page.getByText('The server did not respond').count()).toBe(0)
  })

  test('the secret of a new key stays until somebody has copied it: Escape, Back and links keep it', async () => {
    await go('#/keys')
    await go('#/keys/new')
    await page.getByLabel('Name').fill('kept')
    await button('Create key').click()
    const secret = page.getByRole('dialog').getByText(/^sk-lk-v1-/)
    await secret.waitFor()
    for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Escape')
    await page.evaluate(() => {
      history.back()
      return new Promise((resolve) =>
        addEventListener('hashchange', () => location.hash === '#/keys/new' && resolve(0)),
      )
    })
    expect(await secret.isVisible()).toBe(true)
    await button('I have copied it').click()
    await heading('kept')
  })

  test('a text that is too long for a token is refused before the browser shows it', async () => {
    await go('#/try')
    const token = page.getByLabel('Token (JWT)')
    await token.focus()
    await page.evaluate(() => {
      const data = new DataTransfer()
      data.setData('text/plain', 'a'.repeat(2_000_000))
      const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
      if (document.activeElement?.dispatchEvent(event))
        throw new Error('The browser would put two million characters into the field')
    })
    await page.getByText('This has 2,000,000 characters, and a token has at most 16,384').waitFor()
    await token.fill(`eyJhbGciOiJFUzI1NiJ9.${'e'.repeat(17_000)}.x`)
    await page.getByText('a token has at most 16,384').waitFor()
    expect(await button('Check the token').isDisabled()).toBe(true)
    await token.fill(await latchkey.mint())
    expect(await page.getByRole('group', { name: 'payload' }).textContent()).toContain('workload-1')
  })

  test('in forced colors, a switch that is on differs from one that is off', async () => {
    await latchkey.admin('policies.pause', { policy: 'a newcomer' })
    await page.emulateMedia({ forcedColors: 'active' })
    await go('#/policies')
    await page.getByRole('switch', { name: 'Enabled: a newcomer', checked: false }).waitFor()
    const lookOf = (name: string) =>
      page
        .getByRole('switch', { name })
        .evaluate((one) =>
          [getComputedStyle(one), getComputedStyle(one.children[0] as Element)].map((style) => style.backgroundColor),
        )
    expect(await lookOf('Enabled: policy')).not.toEqual(await lookOf('Enabled: a newcomer'))
    const [back, knob] = await lookOf('Enabled: policy')
    expect(knob).not.toBe(back)
    await page.emulateMedia({ forcedColors: 'none' })
  })

  test('nothing was blocked or failed meanwhile', () => {
    expect(page.problems.filter((problem) => !problem.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([])
  })
})
