// The page by keyboard and with little traffic: the palette, the keys, sorting by a click on a title, rows that are links, charts that say
// their numbers, and polls that cost nothing while nothing changes.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { type OpenedPage, openAdminPage } from '../support/opened-page.ts'

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Federation
  let page: OpenedPage
  const go = (hash: string) => page.evaluate((to) => location.assign(to), hash)
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const dialog = () => page.getByRole('dialog')
  const press = (keys: string) => page.keyboard.press(keys)

  beforeAll(async () => {
    latchkey = await startFederation()
    const boss = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
    for (const name of ['beta', 'Alpha', 'gamma 10', 'gamma 9']) await latchkey.admin('keys.create', { name })
    await latchkey.exchange(await latchkey.mint())
    page = await openAdminPage(latchkey, { key: boss.key })
    await heading('Overview')
  })
  afterAll(() => latchkey.stop())

  test('the palette finds views, actions and objects by name, and a request id opens its exchange', async () => {
    await press('Control+k')
    await page.keyboard.type('changes')
    await press('Enter')
    await heading('Changes')
    await press('Control+k')
    await page.keyboard.type('gamma')
    await page.getByRole('option', { name: 'gamma 10' }).waitFor()
    await press('ArrowDown')
    expect(await dialog().getByRole('option', { selected: true }).textContent()).toContain('gamma')
    await press('Enter')
    await page.getByRole('heading', { level: 1, name: /^gamma/ }).waitFor()
    const { data } = await latchkey.admin<{ data: { request_id: string }[] }>('audit.list', {})
    await press('Control+k')
    await page.keyboard.type(data[0]?.request_id ?? '')
    await press('Enter')
    await heading('Exchange')
    expect(page.problems).toEqual([])
  })

  test('an action of the palette asks which object, and does there what its view does', async () => {
    const choose = async (text: string) => {
      await press('Control+k')
      await page.keyboard.type(text)
      await press('Enter')
    }
    await choose('rotate a')
    await dialog().getByRole('combobox', { name: 'Rotate a key: which one?' }).waitFor()
    await page.keyboard.type('beta')
    await page.waitForFunction(() => document.querySelectorAll('#choices li').length === 1)
    await press('Enter')
    await dialog().getByText('Rotate this key?').waitFor()
    await press('Escape')
    await heading('beta')
    await choose('pause')
    await dialog().getByRole('option', { name: 'policy' }).waitFor()
    await press('Enter')
    await page.getByText('Paused policy').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Resumed policy').waitFor()
    await press('Control+k')
    await page.keyboard.type('pause pol')
    await dialog().getByRole('option', { name: 'Pause policy' }).waitFor()
    await press('Escape')
    await choose('back up')
    await dialog().getByText('Back up now?').waitFor()
    await press('Escape')
    await heading('System')
    await choose('new key')
    await heading('New key')
  })

  test('the palette makes the page dark or light, and signs out', async () => {
    const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)
    for (const [words, shown] of [
      ['dark', 'dark'],
      ['light', 'light'],
      ['as the system', 'light dark'],
    ] as const) {
      await press('Control+k')
      await page.keyboard.type(words)
      await dialog()
        .getByRole('option', { name: /^Appearance: / })
        .waitFor()
      await press('Enter')
      expect(await scheme()).toBe(shown)
    }
    await press('Control+k')
    await page.keyboard.type('sign out')
    await dialog().getByRole('option', { name: 'Sign out' }).waitFor()
    await press('Escape')
  })

  test('a row of a list is one stop, and the arrow keys lead to what else is in it and to other rows', async () => {
    await go('#/keys')
    await heading('Keys')
    await page.getByRole('link', { name: 'Alpha', exact: true }).waitFor()
    const focused = () =>
      page.evaluate(
        () => (document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent) || '',
      )
    const rows = page.locator('tbody tr')
    const names = await rows.locator('th a').allTextContents()
    await rows.nth(0).locator('th a').focus()
    await press('Tab')
    expect(await focused()).toBe(names[1] ?? '')
    await press('Shift+Tab')
    expect(await focused()).toBe(names[0] ?? '')
    await press('ArrowLeft')
    expect(await focused()).toBe(`Choose ${names[0]}`)
    await press('ArrowDown')
    expect(await focused()).toBe(`Choose ${names[1]}`)
    await press('Space')
    await page.getByText('1 chosen').waitFor()
    await press('Space')
    await press('ArrowRight')
    expect(await focused()).toBe(names[1] ?? '')
  })

  test('the palette closes with Escape and leaves the focus where it was', async () => {
    await go('#/keys')
    await heading('Keys')
    await page.getByLabel('Kind').focus()
    await press('Control+k')
    await dialog().waitFor()
    await press('Escape')
    await dialog().waitFor({ state: 'detached' })
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('filter-kind')
  })

  test('every view has a letter', async () => {
    await go('#/keys')
    await heading('Keys')
    await page.evaluate(() => (document.activeElement as HTMLElement).blur())
    await press('?')
    const listed = await dialog().locator('dd').allTextContents()
    const views = await page.locator('#navigation nav li').allTextContents()
    expect(views.map((each) => each.trim()).filter((each) => !listed.includes(each))).toEqual([])
    await press('Escape')
  })

  test('outside of fields, g and a letter open a view, n creates, / searches and ? helps', async () => {
    await page.evaluate(() => (document.activeElement as HTMLElement).blur())
    await press('g')
    await press('p')
    await heading('Policies')
    await page.getByLabel('Search policies by name').waitFor()
    await press('/')
    expect(await page.evaluate(() => document.activeElement?.getAttribute('type'))).toBe('search')
    await page.keyboard.type('gp?n')
    await heading('Policies')
    expect(await page.getByLabel('Search policies by name').inputValue()).toBe('gp?n')
    // Escape empties the field, and then leaves it.
    await press('Escape')
    await press('Escape')
    await press('n')
    await heading('New policy')
    await press('Shift+?')
    await dialog().getByText('views, actions, objects by name').waitFor()
    await press('Escape')
  })

  test('a click on a title sorts, numbers within names too, and the next one turns it round', async () => {
    const names = () => page.locator('tbody th a').allTextContents()
    await go('#/keys?kind=inference')
    await page.getByRole('link', { name: 'beta' }).waitFor()
    await page.getByRole('button', { name: 'Key', exact: true }).click()
    const sorted = ['Alpha', 'beta', 'gamma 9', 'gamma 10', 'target']
    await page.getByRole('columnheader', { name: 'Key' }).and(page.locator('[aria-sort="ascending"]')).waitFor()
    expect(await names()).toEqual(sorted)
    await page.getByRole('button', { name: 'Key' }).click()
    await page.locator('[aria-sort="descending"]').waitFor()
    expect(await names()).toEqual(sorted.toReversed())
  })

  test('a click anywhere in a row opens what it is about', async () => {
    await page.getByRole('row').filter({ hasText: 'beta' }).getByRole('cell').last().click()
    await heading('beta')
  })

  test('the arrow keys show the numbers of a bar', async () => {
    await go('#/overview')
    const chart = page.getByRole('img', { name: /^Issued and refused per hour/ })
    await chart.focus()
    await press('ArrowLeft')
    const card = page.getByRole('status').filter({ hasText: 'Issued' })
    await card.waitFor()
    expect(await card.textContent()).toMatch(/Issued\s*1[\s\S]*Total\s*1/)
    expect(page.problems).toEqual([])
  })

  test('a poll that finds nothing new is a 304 without a body', async () => {
    await go('#/exchanges')
    await page.getByRole('cell', { name: 'issued' }).first().waitFor()
    const again = page.waitForResponse((response) => response.url().includes('/audit?') && response.status() === 304)
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await again
    await latchkey.exchange(await latchkey.mint())
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await page.getByRole('button', { name: '1 new: show' }).click()
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2)
    expect(page.problems).toEqual([])
  })
})
