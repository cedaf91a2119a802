// The views about keys, presets, usage, servers, changes and the system in a real browser: what people do with them, hostile texts, a session
// that only reads or ends, and two editors of one key.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { checkRowProof } from '../../src/audit-log/row-proof.ts'
import { openCheckpoint } from '../../src/audit-log/transparency/checkpoint.ts'
import { parseVerifierKey, type VerifierKey } from '../../src/audit-log/transparency/note.ts'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { answer } from '../support/inference.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { type OpenedPage, openAdminPage } from '../support/opened-page.ts'
import { startScriptedUpstream } from '../support/scripted-upstream.ts'
import { isServerKind } from '../support/server-kind.ts'
import { until } from '../support/until.ts'

type Key = Row & { key: string; hash: string }
const hostile = `<img src=x onerror=alert(1)>=1+1 ${'W'.repeat(80)}`

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Federation
  let boss: Key
  let page: OpenedPage
  const go = (hash: string, one = page) => one.evaluate((to) => location.assign(to), hash)
  /** As when somebody comes back to the tab: it asks at once instead of after its three seconds. */
  const wake = (one: OpenedPage) => one.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  const heading = (name: string, one = page) => one.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const newKey = (name: string, more = {}) => latchkey.admin<Key>('keys.create', { name, ...more })
  const button = (name: string, one = page) => one.getByRole('button', { name, exact: true })
  const save = (slug: string, temperature: number) =>
    latchkey.admin('presets.save', {
      ...{ preset: slug, dialect: 'chat' },
      body: JSON.stringify({ model: 'm', temperature, messages: [{ role: 'system', content: hostile }] }),
    })
  const ask = async (key: string, model: string) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] })
    const response = await fetch(`${latchkey.server.baseUrl}/chat/completions`, { method: 'POST', headers, body })
    await response.text()
    return response.status
  }

  beforeAll(async () => {
    latchkey = await startFederation()
    boss = await newKey('boss', { kind: 'management' })
    await latchkey.admin('prices.set', { prices: [{ model: '*', prompt: 1_000, completion: 1_000 }] })
    await latchkey.admin('upstreams.add', { name: hostile.slice(0, 100), base_url: 'http://127.0.0.1:1/v1' })
    await newKey(hostile.slice(0, 100))
    await save('support', 0.2)
    await save('support', 0.7)
    await latchkey.admin('presets.update', { preset: 'support', description: hostile })
    await latchkey.exchange(await latchkey.mint({ sub: hostile }))
    page = await openAdminPage(latchkey, { key: boss.key, acceptDownloads: true })
  })
  afterAll(() => latchkey.stop())

  test('begins with what needs attention, the exchanges and the spend, by four requests for data', async () => {
    const whole = async () => {
      await heading('Overview')
      const findings = isServerKind ? [] : ['Backups are not scheduled']
      for (const text of ['subject_mismatch', ...findings, 'Spend per day'])
        await page.getByText(text).first().waitFor()
    }
    await whole()
    const asked: string[] = []
    page.on('request', (request) => {
      const path = new URL(request.url()).pathname
      if (path.startsWith('/v1/') && !path.startsWith('/v1/admin/')) asked.push(path)
    })
    await page.reload()
    await whole()
    expect(await page.locator('.tiles').textContent()).toMatch(/Requests refused\s*–\s*not known before the start, /)
    expect(asked.toSorted()).toEqual([
      '/v1/usage',
      '/v1/usage/refused',
      '/v1/workload-identity/audit/counts',
      '/v1/workload-identity/findings',
    ])
    page.removeAllListeners('request')
  })

  test('creates a key whose secret is shown once and works, with its budget as a bar', async () => {
    await go('#/keys/new')
    await heading('New key')
    await page.getByLabel('Name').fill('n'.repeat(130))
    await page.getByText('Use at most 128 characters: this has 130').waitFor()
    expect(await page.getByLabel('Name').inputValue()).toHaveLength(130)
    await page.getByLabel('Name').fill('made here')
    expect(await page.locator('#f-name-error').textContent()).toBe('')
    await page.getByLabel('Budget in US dollars').fill('0.5')
    await page.getByLabel('Budget resets').selectOption('monthly')
    await button('Create key').click()
    const secret = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
    expect(secret).toMatch(/^sk-lk-v1-[0-9a-f]{64}$/)
    const [dialog, copy] = await Promise.all([
      page.getByRole('dialog').boundingBox(),
      button('Copy the key').boundingBox(),
    ])
    expect((copy?.x ?? 9_999) + (copy?.width ?? 0)).toBeLessThan((dialog?.x ?? 0) + (dialog?.width ?? 0))
    await button('I have copied it').click()
    await heading('made here')
    expect(await page.content()).not.toContain(secret)
    expect(await ask(secret, 'some-model')).toBe(200)
    await page.reload()
    await page.getByText(/of \$0.50 a month/).waitFor()
    const filled = await page.locator('.meter rect:not(.track)').first().getAttribute('width')
    expect(Number(filled)).toBeGreaterThan(0)
  })

  test('disables a key at once, after it said what stops', async () => {
    await go(`#/keys/${latchkey.key.hash}`)
    await heading('target')
    expect(await ask(latchkey.key.key, 'm')).toBe(200)
    await button('Disable').click()
    await page.getByRole('dialog').getByText('New exchanges under 1 enabled policy stop too').waitFor()
    await button('Disable key').click()
    await button('Enable').waitFor()
    expect(await ask(latchkey.key.key, 'm')).toBe(401)
    await button('Enable').click()
    await button('Disable').waitFor()
    expect(await ask(latchkey.key.key, 'm')).toBe(200)
  })

  test('finds keys while somebody types', async () => {
    await go('#/keys')
    const boss = page.locator('main').getByRole('link', { name: 'boss' })
    await boss.waitFor()
    await page.getByRole('searchbox').fill('MADE')
    await boss.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'made here' }).waitFor()
    expect(page.url()).toContain('search=MADE')
  })

  test('shows both versions to the second of two editors, and saves over the first only when asked', async () => {
    const key = await newKey('edited twice')
    await go(`#/keys/${key.hash}/edit`)
    await page.getByLabel('Requests a minute').fill('100')
    await latchkey.admin('keys.update', { key: 'edited twice', requests_per_minute: 50 })
    await button('Save').click()
    const conflict = page.getByRole('alert').filter({ hasText: 'Somebody else changed this key' })
    await conflict.waitFor()
    expect(await conflict.locator('del, ins').allTextContents()).toEqual(['50', '100'])
    expect(await latchkey.admin('keys.show', { key: 'edited twice' })).toMatchObject({ requests_per_minute: 50 })
    await button('Save').click()
    expect(await latchkey.admin('keys.show', { key: 'edited twice' })).toMatchObject({ requests_per_minute: 50 })
    await page.getByLabel('Requests a minute').fill('75')
    await button('Save').click()
    await heading('edited twice')
    expect(await latchkey.admin('keys.show', { key: 'edited twice' })).toMatchObject({ requests_per_minute: 75 })
  })

  test('compares versions of a preset, designates one and completes a request with it', async () => {
    await go('#/presets/support?tab=versions')
    await heading('support')
    await page.getByRole('table', { name: 'Changed fields' }).getByText('temperature').waitFor()
    await button('Designate version 1').click()
    await button('Designate').click()
    await button('Designate version 2').waitFor()
    await go('#/presets/support?tab=try')
    await button('Complete the request').click()
    await page.getByText('Completed with').waitFor()
    expect(await page.locator('main pre').last().textContent()).toContain('"temperature": 0.2')
    expect(await latchkey.admin('presets.show', { preset: 'support' })).toMatchObject({
      designated_version: { version: 1 },
    })
  })

  test('adds up usage by every field, and saves it as CSV without formulas', async () => {
    await ask(latchkey.key.key, '=1+1')
    await go('#/usage?by=model')
    await heading('Usage')
    await page
      .getByRole('rowheader', { name: 'echo' })
      .or(page.getByRole('rowheader', { name: '=1+1' }))
      .first()
      .waitFor()
    const downloading = page.waitForEvent('download')
    await button('Download CSV').click()
    const download = await downloading
    const csv = readFileSync(await download.path(), 'utf8')
    const { data } = await latchkey.admin<{ data: object[] }>('usage.sum', { by: 'model' })
    expect(csv.split('\r\n')[0]).toBe(Object.keys(data[0] ?? {}).join(','))
    expect(csv).toMatch(/,last_used_at\r\n.*,\d{4}-\d\d-\d\dT[\d:.]+Z\r\n/)
    expect(csv).not.toMatch(/(^|,)"?[=+@]/m)
    expect(download.suggestedFilename()).toMatch(/^usage-by-model-\d{4}-\d\d-\d\d-to-\d{4}-\d\d-\d\d\.csv$/)
    await page.getByLabel('Time').selectOption('Last month')
    const ofLastMonth = page.waitForEvent('download')
    await button('Download CSV').click()
    expect((await ofLastMonth).suggestedFilename()).toMatch(/-(\d{4}-\d\d)-01-to-\1-(28|29|30|31)\.csv$/)
    await page.getByLabel('Time').selectOption('This month')
    for (const by of ['Key', 'Policy', 'Subject', 'Preset', 'Inference server', 'Day (UTC)']) {
      await page.getByLabel('Group by').selectOption(by)
      await page.getByRole('table', { name: `Usage by ${by}` }).waitFor()
    }
    await go(`#/usage?by=model&key=${latchkey.key.hash}`)
    await page.getByText('Only the key').waitFor()
    const ofOne = page.waitForEvent('download')
    await button('Download CSV').click()
    expect((await ofOne).suggestedFilename()).toStartWith('usage-of-target-by-model-')
  })

  test('checks a server, ends a session, rotates the signing key, and shows who changed what', async () => {
    await go('#/upstreams')
    await button('Check configured').click()
    await page.getByText('responds').waitFor()
    const other = await openAdminPage(latchkey, { key: boss.key })
    await go('#/system')
    await page
      .getByRole('row', { name: /boss admin/ })
      .first()
      .waitFor()
    const rows = page.getByRole('table', { name: 'Sessions of this page' }).locator('tbody tr')
    await rows.filter({ hasNotText: 'this one' }).getByRole('button').first().click()
    await button('End session').click()
    await wake(other)
    await other.getByText('Your session has ended').waitFor()
    await other.context().close()
    await button('Rotate').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    await page.getByText('signs soon').waitFor()
    await go('#/changes')
    await page.getByText('signing_keys.rotate').first().waitFor()
  })

  test('shows what runs and waits, and whose requests these are, while it changes', async () => {
    const gpu = await startScriptedUpstream()
    const { promise, resolve } = Promise.withResolvers<void>()
    gpu.answer.current = () => promise.then(() => Response.json(answer))
    await latchkey.admin('upstreams.add', { name: 'gpu', base_url: gpu.url, models: ['held'], max_running: 1 })
    const { key } = await newKey('busy')
    await go('#/upstreams')
    const load = (name: string) => page.getByRole('table', { name }).getByRole('row')
    const hold = async () => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ model: 'held', messages: [], provider: { only: ['gpu'] } })
      return (await fetch(`${latchkey.server.baseUrl}/chat/completions`, { method: 'POST', headers, body })).status
    }
    const all = [hold()]
    await until('the first request', () => gpu.requests.length === 1)
    all.push(hold(), hold())
    await load('Load of inference servers')
      .filter({ hasText: /gpu.*1 of 1.*2/s })
      .waitFor()
    await load('Keys with requests')
      .filter({ hasText: /busy.*1.*2/s })
      .waitFor()
    resolve()
    expect(await Promise.all(all)).toEqual([200, 200, 200])
    await page.getByText('Nothing runs or waits at this moment').waitFor()
    await latchkey.admin('upstreams.remove', { upstream: 'gpu' })
    await gpu.stop()
  })

  test('shows the audit log, and downloads what an auditor checks', async () => {
    await latchkey.admin('audit.checkpoint')
    const save = async (name: string) => {
      const [file] = await Promise.all([page.waitForEvent('download'), button(name).first().click()])
      return readFileSync(await file.path(), 'utf8')
    }
    await go('#/audit-log')
    await page.getByText('exchanges, changes and daily usage').waitFor()
    const key = parseVerifierKey((await save('Download verifier keys')).trim()) as VerifierKey
    expect(openCheckpoint(await save('Download checkpoint'), key)).toMatchObject({ origin: key.name })
    await go('#/changes')
    await page.locator('main summary').first().click()
    expect(checkRowProof(await save('Download proof'), key)).toMatchObject({ problem: undefined, kind: 'change' })
    const { data } = await latchkey.admin<{ data: { request_id: string }[] }>('audit.list', {})
    await go(`#/exchanges/${data[0]?.request_id}`)
    await heading('Exchange')
    expect(checkRowProof(await save('Download proof'), key)).toMatchObject({ problem: undefined, kind: 'exchange' })
    const { data: requests } = await latchkey.admin<{ data: { request_id: string }[] }>('usage.requests', {})
    await go(`#/requests/${requests[0]?.request_id}`)
    await button('Download proof').click()
    await page.getByText(/has a proof once the log has the totals of its day: after .*T00:15Z/).waitFor()
  })

  test('says how many entries of the audit log were pruned', async () => {
    const log = await latchkey.admin<object>('audit.log')
    const json = { data: { ...log, entries: 1_024, pruned: 512 } }
    await page.route('**/installation/audit-log', (route) => route.fulfill({ json }))
    await go('#/audit-log')
    await page.getByText('1,024, of which 512 were pruned').waitFor()
    await page.unroute('**/installation/audit-log')
  })

  test('says of something that does not exist that it was not found, and no longer that it loads', async () => {
    await go('#/presets/nowhere')
    await page.getByRole('alert').getByText('not found').waitFor()
    expect(await page.getByText('Loading…').filter({ visible: true }).count()).toBe(0)
    page.problems.length = 0
  })

  test('has no buttons for a key that only reads, and ends when the key is disabled', async () => {
    const auditor = await newKey('auditor', { kind: 'management_read_only' })
    const other = await openAdminPage(latchkey, { key: auditor.key })
    for (const [hash, title] of [
      [`#/keys/${latchkey.key.hash}`, 'target'],
      ['#/presets/support', 'support'],
      ['#/upstreams', 'Servers and prices'],
      ['#/changes', 'Changes'],
      ['#/system', 'System'],
    ] as const) {
      await go(hash, other)
      await heading(title, other)
      await other.locator('.view > :not(.loading)').first().waitFor()
      const names = await other.locator('main').getByRole('button').allTextContents()
      expect(
        names.filter((name) => /Disable|Delete|Archive|Designate|Check|Rotate|End|Download proof/.test(name)),
      ).toEqual([])
    }
    await latchkey.admin('keys.disable', { key: 'auditor' })
    await wake(other)
    await other.getByText('Your session has ended').waitFor()
    expect(other.problems).toEqual([])
    await other.context().close()
  })

  test('is of one organization: another one does not see the installation', async () => {
    await latchkey.admin('organizations.create', { name: 'other' })
    const stranger = await newKey('stranger', { kind: 'management', organization: 'other' })
    const other = await openAdminPage(latchkey, { key: stranger.key, hash: '#/upstreams' })
    await other.getByText('This belongs to the whole installation').waitFor()
    await go('#/system', other)
    await other.getByText('This belongs to the whole installation').waitFor()
    await other.getByRole('table', { name: 'Sessions of this page' }).getByText('stranger').waitFor()
    expect(other.problems).toEqual([])
    await other.context().close()
  })

  test('signs out everywhere, the own session last', async () => {
    const other = await openAdminPage(latchkey, { key: boss.key })
    await go('#/system')
    await button('Sign out everywhere').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click()
    await page.getByText('Your session has ended').waitFor()
    await wake(other)
    await other.getByText('Your session has ended').waitFor()
    await other.context().close()
  })
})
