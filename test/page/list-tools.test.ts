// What lists of the page offer beside their rows: filters that complete, several rows at once with undo, exports, tabs of details, inference
// requests, and the way back to where somebody was.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { findBarriers, type OpenedPage, openAdminPage } from '../support/opened-page.ts'

type Key = Row & { key: string; hash: string }

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Inference
  let page: OpenedPage
  const go = (hash: string) => page.evaluate((to) => location.assign(to), hash)
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const names = () => page.locator('tbody th a').allTextContents()
  const wake = () => page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  const ask = async (model: string, key = latchkey.key.key) => {
    const response = await latchkey.complete({ ...question, model }, { authorization: `Bearer ${key}` })
    await response.text()
    return response.headers.get('x-request-id') ?? ''
  }
  /** The text of the file that a button downloads. */
  const saved = async (name: string) => {
    const [file] = await Promise.all([page.waitForEvent('download'), button(name).click()])
    return { name: file.suggestedFilename(), text: await Bun.file(await file.path()).text() }
  }

  beforeAll(async () => {
    let ago = 0
    latchkey = await startInference({}, () => Date.now() - ago)
    ago = 2 * 24 * 60 * 60 * 1_000
    latchkey.upstream.answer.current = () => Response.json(answer)
    for (let number = 10; number < 30; number++)
      await latchkey.admin('policies.create', {
        ...{ name: `job ${number}`, issuer: 'idp', key: 'target', audience: 'a', subject: `job ${number}` },
      })
    await latchkey.admin('keys.create', { name: 'spare' })
    await latchkey.admin('issuers.add', { name: 'spare idp', issuer_url: 'https://spare.example.com', shared: false })
    ago = 0
    const boss = await latchkey.admin<Key>('keys.create', { name: 'boss', kind: 'management' })
    page = await openAdminPage(latchkey, { key: boss.key, acceptDownloads: true, timezoneId: 'Africa/Nairobi' })
  })
  afterAll(() => latchkey.stop())

  test('a filter completes names, is in the address, and is cleared', async () => {
    await latchkey.admin('issuers.add', { name: 'other idp', issuer_url: 'https://sso.example.com', shared: false })
    await go('#/policies')
    const issuer = page.getByLabel('Issuer', { exact: true })
    await issuer.fill('other')
    await page.locator('datalist option[value="other idp"]').waitFor({ state: 'attached' })
    await issuer.fill('other idp')
    await page.getByText('Nothing matches these filters').waitFor()
    expect(page.url()).toContain('issuer=other+idp')
    await button('Clear filters').click()
    await page.getByRole('link', { name: 'job 29' }).waitFor()
    expect(page.url()).not.toContain('issuer')
    await page.getByLabel('Unused', { exact: true }).selectOption('7')
    await page.getByText('Nothing matches these filters').waitFor()
    await button('Clear search and filters').click()
  })

  test('one filter finds what was never used, in each list that has it', async () => {
    await latchkey.exchange(await latchkey.mint())
    for (const [list, used, unused] of [
      ['policies', 'policy', 'job 29'],
      ['keys', 'target', 'spare'],
      ['issuers', 'idp', 'spare idp'],
    ] as const) {
      await go(`#/${list}`)
      await page.getByRole('link', { name: used, exact: true }).waitFor()
      await page.getByLabel('Unused', { exact: true }).selectOption('Never used, older than a day')
      await page.getByRole('link', { name: used, exact: true }).waitFor({ state: 'detached' })
      await page.getByRole('link', { name: unused, exact: true }).waitFor()
      await page.getByText('never, made 2 days ago').first().waitFor()
      await page.getByLabel('Unused', { exact: true }).selectOption('Never used, older than 7 days')
      await page.getByRole('link', { name: unused, exact: true }).waitFor({ state: 'detached' })
    }
  })

  test('several policies are paused at once, and Undo resumes them', async () => {
    await go('#/policies?search=job 1')
    await page.getByRole('checkbox', { name: 'Choose job 11' }).check()
    await page.getByRole('checkbox', { name: 'Choose job 12' }).check()
    await page.getByText('2 chosen').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await button('Pause').click()
    const states = async () =>
      (await latchkey.admin<{ data: Row[] }>('policies.list', { state: 'paused' })).data.map(({ name }) => name)
    await page.getByText('2 paused').waitFor()
    expect(await states()).toEqual(['job 11', 'job 12'])
    expect(await page.getByText('2 chosen').count()).toBe(0)
    await button('Undo').click()
    await page.getByText('2 undone').waitFor()
    expect(await states()).toEqual([])
  })

  test('the box in the head chooses all rows, and deleting many asks first', async () => {
    await go('#/policies?search=job 2')
    await page.getByRole('checkbox', { name: 'Choose all rows' }).check()
    await page.getByText('10 chosen').waitFor()
    await button('Delete').click()
    await page.getByRole('dialog').getByText('Delete 10 policies?').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('10 deleted').waitFor()
    await go('#/policies?search=job')
    await page.getByRole('link', { name: 'job 19' }).waitFor()
    expect(await names()).toHaveLength(10)
  })

  test('an export has what is filtered, as CSV that is no formula and as JSON', async () => {
    await latchkey.admin('keys.create', { name: '=1+1' })
    await go('#/keys?kind=inference&search=1')
    await page.getByText('=1+1').waitFor()
    const csv = await saved('Export as CSV')
    expect(csv.name).toMatch(/^keys-\d{4}-\d{2}-\d{2}\.csv$/)
    expect(csv.text.split('\r\n')).toHaveLength(3)
    expect(csv.text).toContain(`'=1+1`)
    const rows = JSON.parse((await saved('Export as JSON')).text) as Row[]
    expect(rows.map(({ name }) => name)).toEqual(['=1+1'])
    expect(csv.text + JSON.stringify(rows)).not.toMatch(/sk-lk-v1-[0-9a-f]{9}/)
  })

  test('tabs of details are in the address, and arrow keys move between them', async () => {
    await latchkey.exchange(await latchkey.mint())
    await go(`#/policies/${latchkey.policy.id}`)
    await page.getByRole('tab', { name: 'Overview' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('tabpanel', { name: 'Rules' }).getByText('Audience').waitFor()
    expect(page.url()).toEndWith('?tab=rules')
    for (const [tab, text] of [
      ['Exchanges', 'issued'],
      ['Usage', 'No usage in this time'],
      ['History', /^Created$/],
    ] as const) {
      await page.keyboard.press('ArrowRight')
      await page.getByRole('tabpanel', { name: tab }).locator('td, .empty').getByText(text).first().waitFor()
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(tab)
    }
    await page.keyboard.press('ArrowRight')
    await page.getByRole('tabpanel', { name: 'Overview' }).waitFor()
    expect(page.url()).toEndWith(`#/policies/${latchkey.policy.id}`)
    await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Policies' }).click()
    await heading('Policies')
  })

  test('requests are listed with their outcome, filtered by model, and one opens by its id', async () => {
    await ask('first')
    await go('#/requests')
    await page.getByRole('cell', { name: 'target' }).first().waitFor()
    const id = await ask('second')
    await wake()
    await button('1 new: show').click()
    await page.locator(`a[href="#/requests/${id}"]`).waitFor()
    const model = page.getByLabel('Model', { exact: true })
    await model.fill('second')
    await model.press('Enter')
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1)
    await go('#/requests?attribution=nobody')
    await page.getByText('Nothing matches these filters').waitFor()
    await go(`#/exchanges/${id}`)
    await heading('Request')
    await page.getByText('asked for second').waitFor()
    await page.goBack()
    await heading('Requests')
  })

  test('requests that were refused before are counted with their reason', async () => {
    const poor = await latchkey.admin<Key>('keys.create', { name: 'poor', limit: 0 })
    await ask('dear', poor.key)
    await ask('dear', poor.key)
    await go('#/requests?tab=refused')
    const row = page.getByRole('row').filter({ hasText: 'poor' })
    await row.waitFor()
    await page.getByText('what it refused before is not known').waitFor()
    expect(await row.textContent()).toMatch(/402[\s\S]*Budget of the key spent[\s\S]*2/)
    await page.getByLabel('Reason', { exact: true }).selectOption('Budget spent')
    await page.getByText('Nothing matches these filters').waitFor()
    await page.getByLabel('Reason', { exact: true }).selectOption('Budget of the key spent')
    await row.getByRole('link', { name: 'Raise the limit' }).click()
    await heading('Edit key')
    await go(`#/keys/${poor.hash}?tab=requests`)
    await page.getByText('Budget of the key spent').last().waitFor()
    await go('#/overview')
    await page.getByRole('link', { name: /^Requests refused\s*2\s*since the start, .*not known before/ }).click()
    await heading('Requests')
    await row.waitFor()
  })

  test('times say their zone once, and somebody can see all of them in UTC', async () => {
    const { created_at } = await latchkey.admin<{ created_at: string }>('policies.show', { policy: 'policy' })
    await go(`#/keys/${latchkey.key.hash}`)
    const time = page.locator('dd time').last()
    const shown = async () => Date.parse(`${((await time.textContent()) ?? '').replaceAll('\u202f', ' ')} UTC`)
    const hours = async () => Math.round((Date.parse(created_at) - (await shown())) / 3_600_000)
    await time.waitFor()
    await page.getByText('Times in Africa/Nairobi, GMT+3').waitFor()
    expect(await time.getAttribute('title')).toMatch(/UTC · .+ Africa\/Nairobi, GMT\+3$/)
    expect(await hours()).toBe(-3)
    await button('Show UTC').click()
    await page.getByText('Times in UTC').waitFor()
    expect(await hours()).toBe(0)
    await page.reload()
    await time.waitFor()
    expect(await hours()).toBe(0)
    await button('Show local times').click()
    await page.getByText('Times in Africa/Nairobi').waitFor()
  })

  test('Back returns to the row and the place in the list', async () => {
    await page.setViewportSize({ width: 1280, height: 400 })
    await go('#/policies')
    const link = page.getByRole('link', { name: 'job 19' })
    await link.focus()
    const top = () => page.locator('.list').evaluate((list) => list.scrollTop)
    const before = await top()
    expect(before).toBeGreaterThan(0)
    await page.keyboard.press('Enter')
    await heading('job 19')
    await page.goBack()
    await page.waitForFunction(() => document.activeElement?.textContent === 'job 19')
    expect(await top()).toBe(before)
  })

  test('nothing failed meanwhile', () => {
    expect(page.problems).toEqual([])
  })
})
