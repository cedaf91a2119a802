// Budgets and alerts on the page, in a real browser: the day of a platform team whose 12 repositories share one key, from the first budget
// to the file for finance, and what a role may not do.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { answer, question } from '../support/inference.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { type OpenedPage, openAdminPage } from '../support/opened-page.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

type Key = Row & { key: string }
const repositories = Array.from({ length: 12 }, (_, index) => String(1_001 + index))

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Federation
  let upstream: ScriptedUpstream
  let receiver: WebhookReceiver
  let boss: Key
  let page: OpenedPage
  const go = (hash: string) => page.evaluate((to) => location.assign(to), hash)
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const inDialog = () => page.getByRole('dialog')

  /** Each request costs 50 cents. Returns the statuses. */
  async function spend(repository: string, times: number): Promise<number[]> {
    const reply = await latchkey.exchange(await latchkey.mint({ repository_id: repository }))
    const { access_token: token } = (await reply.json()) as { access_token: string }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const statuses: number[] = []
    for (let count = 0; count < times; count++) {
      const init = { method: 'POST', headers, body: JSON.stringify(question) }
      const response = await fetch(`${latchkey.server.baseUrl}/chat/completions`, init)
      await response.arrayBuffer()
      statuses.push(response.status)
    }
    return statuses
  }

  beforeAll(async () => {
    upstream = await startScriptedUpstream()
    upstream.answer.current = () => Response.json({ ...answer, usage: { ...answer.usage, cost: 0.5 } })
    receiver = await startWebhookReceiver()
    const settings = { LATCHKEY_WEBHOOK_NETWORKS: '127.0.0.0/8' }
    latchkey = await startFederation({ upstreamUrl: upstream.url, settings })
    await latchkey.admin('policies.update', { policy: 'policy', attribute_to: 'claims.repository_id' })
    for (const repository of repositories) await spend(repository, 3)
    boss = await latchkey.admin<Key>('keys.create', { name: 'boss', kind: 'management' })
    page = await openAdminPage(latchkey, { key: boss.key, acceptDownloads: true })
  })
  afterAll(async () => {
    await latchkey.stop()
    await upstream.stop()
    await receiver.stop()
  })

  test('shows what a budget would have refused while somebody types, and saves it with other limits for two', async () => {
    await go('#/budgets/new')
    await page.getByText('Enter a limit to see what it would have refused').waitFor()
    expect(await button('Create budget').isDisabled()).toBe(true)
    await page.getByLabel('Name', { exact: true }).fill('repositories')
    await page.getByLabel('Counts').selectOption('attribution')
    await page.locator('#f-limit-0-amount').fill('1')
    await page.getByText('12 of 36 requests would have been refused, of 12 of 12 values').waitFor()
    await page.locator('#f-limit-0-amount').fill('20')
    await page.getByText('None of 36 requests would have been refused').waitFor()
    for (const [index, [value = '', amount = '']] of [
      ['1001', '50'],
      ['1002', '40'],
    ].entries()) {
      await button('Other limits for one value').click()
      await page.locator(`#f-override-${index}-value`).fill(value)
      expect(await button('Create budget').isDisabled()).toBe(true)
      await page.locator(`#f-override-${index}-amount`).fill(amount)
    }
    await page.locator('#f-limit-0-amount').fill('0')
    await button('Create budget').click()
    await inDialog().getByText('refuses every request').waitFor()
    await button('Cancel').click()
    await page.locator('#f-limit-0-amount').fill('20')
    await button('Create budget').click()
    await page.getByText('$1.50 of $50.00 a month').waitFor()
    const { data } = await latchkey.admin<{ data: Row[] }>('budgets.list')
    expect(data).toMatchObject([
      {
        ...{ name: 'repositories', each: 'attribution', windows: [{ per: 'month', usd: 20 }], alerts: [80, 100] },
        overrides: { 1001: [{ per: 'month', usd: 50 }], 1002: [{ per: 'month', usd: 40 }] },
      },
    ])
  })

  test('adds a webhook whose secret is shown once, refuses a private address, and tests it', async () => {
    await go('#/webhooks')
    await page.getByRole('link', { name: 'Add webhook' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill('ops')
    await page.getByLabel('URL', { exact: true }).fill('http://192.168.1.1/hook')
    await button('Add webhook').click()
    await page.getByText('which is not in LATCHKEY_WEBHOOK_NETWORKS').waitFor()
    await page.getByLabel('URL', { exact: true }).fill(receiver.url)
    await button('Add webhook').click()
    const secret = (await inDialog().locator('code').textContent()) ?? ''
    expect(secret).toMatch(/^whsec_/)
    receiver.secret.current = secret
    await button('I have copied it').click()
    await button('Test ops').click()
    await page.getByText('The receiver responded with 204').waitFor()
    expect(receiver.received.map(({ type }) => type)).toEqual(['webhook.test'])
    expect(await page.content()).not.toContain(secret)
  })

  test('shows who runs out next, tops it up, and exports the month for finance', async () => {
    const statuses = await spend('1007', 39)
    expect([statuses.filter((status) => status === 200).length, statuses.at(-1)]).toEqual([37, 402])
    await until('both alerts', () => receiver.received.filter(({ type }) => type === 'budget.reached').length === 2)
    await go('#/budgets')
    await page.getByText('$20.00 of $20.00 a month').waitFor()
    await page.getByText('Requests are refused').first().waitFor()
    await page.getByRole('link', { name: 'repositories' }).click()
    await button('Top up 1007').click()
    expect(
      await inDialog()
        .getByLabel('Adds')
        .evaluate((field) => field === document.activeElement),
    ).toBe(true)
    await inDialog().getByLabel('Ends in days').fill('soon')
    await inDialog().getByText('"soon" is not a number').waitFor()
    await inDialog().getByLabel('Ends in days').fill('7')
    await inDialog().getByLabel('Adds').fill('10')
    await inDialog().getByLabel('Because').fill('release week')
    await inDialog().getByRole('button', { name: 'Top up' }).click()
    await page.getByText('$20.00 of $30.00 a month').waitFor()
    await page.getByText('release week').waitFor()
    expect(await spend('1007', 2)).toEqual([200, 200])
    await page.getByRole('link', { name: 'Usage this month, also as CSV' }).click()
    const [download] = await Promise.all([page.waitForEvent('download'), button('Download CSV').click()])
    const lines = readFileSync(await download.path(), 'utf8')
      .trim()
      .split('\n')
    expect(lines).toHaveLength(13)
    expect(lines.find((line) => line.startsWith('1007,'))).toMatch(/,21,0,\d{4}-\d\d-\d\dT\S+Z\r?$/)
  })

  test('says how many requests have an unknown cost, in the budget, in the list and while somebody types, and links to prices', async () => {
    const before = upstream.answer.current
    upstream.answer.current = () => Response.json(answer)
    expect(await spend('1003', 1)).toEqual([200])
    upstream.answer.current = before
    await go('#/budgets')
    await page.getByText('cost of 1 request unknown').waitFor()
    await page.getByRole('link', { name: 'repositories' }).click()
    await page.getByText('1 request has an unknown cost and counts as free').waitFor()
    await page.getByRole('link', { name: 'Edit', exact: true }).click()
    await page.getByText('1 request has an unknown cost and counts as free').waitFor()
    await page.getByRole('link', { name: 'Set the price of a model' }).click()
    await page.getByLabel('Prompt tokens', { exact: true }).waitFor()
  })

  test('groups usage by a label of the keys', async () => {
    await latchkey.admin('keys.update', { key: 'target', labels: { team: 'platform' } })
    await go('#/usage')
    await page.locator('#f-by option[value="label:team"]').waitFor({ state: 'attached' })
    await page.getByLabel('Group by').selectOption('label:team')
    await page.getByRole('rowheader', { name: 'platform' }).waitFor()
  })

  test('shows a webhook that fails, and why', async () => {
    receiver.answer.current = () => new Response(null, { status: 503 })
    await latchkey.admin('budgets.update', { budget: 'repositories', alerts: [50, 80, 100] })
    await go('#/overview')
    await go('#/webhooks')
    await page.getByText('it responds with 503').waitFor()
    const alerts = page.getByRole('table', { name: 'Latest alerts' })
    await alerts.getByText('50 % of the month').first().waitFor()
    await alerts.getByText('1 waiting').first().waitFor()
    receiver.answer.current = undefined
  })

  test('shows a viewer no buttons that fail', async () => {
    const { data } = await latchkey.admin<{ data: Row[] }>('budgets.list')
    expect(page.problems).toEqual([])
    const viewer = await latchkey.admin<Key>('keys.create', { name: 'viewer', role: 'viewer' })
    const looking = await openAdminPage(latchkey, { key: viewer.key, hash: `#/budgets/${data[0]?.id}` })
    await looking.getByText('$50.00 a month').first().waitFor()
    for (const name of ['Top up', 'Edit', 'Delete', 'Disable'])
      expect(await looking.getByRole('button', { name, exact: true }).count()).toBe(0)
  })
})
