// The views of administration in a real browser: prices and servers, plans and what an organization records, documents, bundles, backups, and
// invitations. Each does what a command does, and nothing that belongs on the server.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { findBarriers, type OpenedPage, openAdminPage } from '../support/opened-page.ts'

type Key = Row & { key: string; hash: string }

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Federation
  let page: OpenedPage
  let backups: string
  const go = (hash: string, one = page) => one.evaluate((to) => location.assign(to), hash)
  const heading = (name: string | RegExp, one = page) => one.getByRole('heading', { level: 1, name }).waitFor()
  const button = (name: string, one = page) => one.getByRole('button', { name, exact: true })
  const field = (name: string, one = page) => one.getByLabel(name, { exact: true })

  beforeAll(async () => {
    latchkey = await startFederation()
    backups = join(latchkey.folder, 'kept')
    const boss = await latchkey.admin<Key>('keys.create', { name: 'boss', kind: 'management' })
    await latchkey.admin('upstreams.add', { name: 'gpu', base_url: 'http://127.0.0.1:1/v1', credential: 'gpu-secret' })
    page = await openAdminPage(latchkey, { key: boss.key })
  })
  afterAll(() => latchkey.stop())

  test('a policy whose key is disabled leads to the key and enables it, and its key begins a new policy', async () => {
    await latchkey.admin('keys.disable', { key: latchkey.key.id })
    await go(`#/policies/${latchkey.policy.id}`)
    await heading('policy')
    await button('Enable its key').click()
    await page.getByText('Its key is enabled').waitFor()
    await page.getByRole('link', { name: 'target', exact: true }).click()
    await heading('target')
    await page.getByText('enabled', { exact: true }).first().waitFor()
    await go(`#/policies/new?key=${latchkey.key.id}`)
    await heading('New policy')
    await page.waitForFunction(
      () => (document.querySelector('[name=key]') as HTMLInputElement | null)?.value === 'target',
    )
  })

  test('sets a price, refuses one at its field, and changes it from a day on', async () => {
    await go('#/upstreams')
    await page.getByRole('link', { name: 'Set a price' }).click()
    await heading('Set a price')
    await field('Model').fill('meta/*')
    await field('Prompt tokens').fill('0,25')
    await field('Completion tokens').fill('1.5')
    await button('Set price').click()
    await page.locator('#f-prompt-error').filter({ hasText: 'write 0.25' }).waitFor()
    await field('Prompt tokens').fill('0.25')
    await field('Longest response in tokens optional').fill('0')
    await button('Set price').click()
    await page
      .locator('#f-max_output_tokens-error')
      .filter({ hasText: /^Longest response in tokens must be/ })
      .waitFor()
    await field('Longest response in tokens optional').fill('4096')
    await button('Set price').click()
    await page.getByRole('link', { name: 'meta/*' }).click()
    await heading('Price of meta/*')
    await field('Prompt tokens').fill('0.5')
    await field('From optional').fill('2098-01-01T00:00')
    const theirs = { model: 'meta/*', prompt: 0.25, completion: 2, max_output_tokens: 4_096 }
    await latchkey.admin('prices.set', { prices: [theirs] })
    await button('Set price').click()
    await page.getByText('Somebody else changed this price').waitFor()
    await button('Set price').click()
    await heading('Servers and prices')
    const { data } = await latchkey.admin<{ data: Record<string, unknown>[] }>('prices.list', {})
    expect(data).toMatchObject([
      { model: 'meta/*', prompt: 0.25, completion: 2, later: [{ prompt: 0.5, completion: 2 }] },
    ])
  })

  test('says what is in force before a price is replaced, and from when the new one counts', async () => {
    await go('#/upstreams/prices/new')
    await heading('Set a price')
    await field('Model').fill('meta')
    expect(await page.getByText('In force for').count()).toBe(0)
    await field('Model').fill('meta/*')
    const says = page.getByText('In force for').locator('..')
    const text = async () => ((await says.textContent()) ?? '').replaceAll(/\s+/g, ' ')
    expect(await text()).toMatch(/meta\/\*: \$0\.25 for .* and \$2\.00 for .*counts instead as soon as you set it/)
    await field('From optional').fill('2099-01-01T00:00')
    expect(await text()).toMatch(/counts instead from Jan 1, 2099/)
    await field('Model').fill('')
    await page.getByRole('link', { name: 'Cancel' }).click()
    await button('Discard it').click()
    await heading('Servers and prices')
  })

  test('changes how much a server gets, and shows where its prompts go without a field for it', async () => {
    await page.getByRole('link', { name: 'Edit gpu' }).click()
    await heading('Edit gpu')
    await field('Weight').fill('3')
    await field('Priority').fill('1000')
    expect(
      await page.locator('main input').evaluateAll((all) => all.map((each) => (each as HTMLInputElement).name)),
    ).not.toContain('base_url')
    await button('Save').click()
    await page.locator('#f-priority-error').filter({ hasText: 'Priority must be at most 100' }).waitFor()
    // What was done before does not stand beside a refusal.
    expect(await page.locator('#notices').getByText('Saved').count()).toBe(0)
    await page.waitForFunction(() => document.activeElement?.id === 'f-priority')
    await field('Priority').fill('5')
    await button('Save').click()
    await heading('Servers and prices')
    expect(await latchkey.admin('upstreams.show', { upstream: 'gpu' })).toMatchObject({
      weight: 3,
      priority: 5,
      has_credential: true,
    })
  })

  test('no key changes over HTTP where prompts go', async () => {
    const path = `${latchkey.server.baseUrl}/installation/upstreams/gpu`
    for (const change of [
      { base_url: 'http://127.0.0.1:2/v1' },
      { credential: null },
      { name: 'other' },
      { ca_pem: null },
    ]) {
      const [name = ''] = Object.keys(change)
      const sent = await page.evaluate(
        async ([url, body]) =>
          (
            await fetch(url ?? '', {
              method: 'PATCH',
              headers: { 'content-type': 'application/json' },
              body: body ?? '',
            })
          ).text(),
        [path, JSON.stringify(change)],
      )
      expect(sent).toContain(name)
      expect(sent).toContain('invalid_request')
    }
    expect(await latchkey.admin('upstreams.show', { upstream: 'gpu' })).toMatchObject({
      base_url: 'http://127.0.0.1:1/v1',
    })
  })

  test('changes what the organization records, and the plan of another organization', async () => {
    await latchkey.admin('organizations.create', { name: 'research' })
    await go('#/organization/edit')
    await field('Claims in the audit log').selectOption('off')
    await field('Time zone optional').fill('Mars/Base')
    await button('Save').click()
    await page.locator('#f-time_zone-error').filter({ hasText: 'Time zone must be the name of a time zone' }).waitFor()
    await field('Time zone optional').fill('Europe/Berlin')
    await button('Save').click()
    await heading('default')
    await page.getByLabel('Plan of research').selectOption('free')
    await button('Change plan').click()
    await page.getByText('The plan was changed').waitFor()
    await button('Create workspace').click()
    await field('Name').fill('team-a')
    await page.getByRole('dialog').getByRole('button', { name: 'Create workspace' }).click()
    await page.getByRole('rowheader', { name: 'team-a' }).waitFor()
    const { data } = await latchkey.admin<{ data: object[] }>('organizations.list')
    expect(data).toMatchObject([
      { name: 'default', record_claims: 'off', time_zone: 'Europe/Berlin' },
      { name: 'research', plan: 'free' },
    ])
  })

  test('shows the drift from a document, and applies it', async () => {
    await latchkey.admin('webhooks.add', { name: 'ops', url: 'https://9.9.9.9/hook' })
    await go('#/documents')
    await button('Show it').click()
    await page.waitForFunction(() =>
      (document.querySelector('#f-document') as HTMLTextAreaElement).value.includes('"latchkey": 1'),
    )
    const shown = await field('Document (JSON)').inputValue()
    expect(shown).toContain('9.9.9.9')
    expect(shown).not.toMatch(/sk-lk-v1|whsec_|gpu/)
    await button('Plan').click()
    await page.getByText('Nothing differs: no drift.').waitFor()
    await latchkey.admin('policies.update', { policy: 'policy', description: 'changed by hand' })
    await button('Plan').click()
    await page.getByRole('region', { name: 'Plan' }).getByText('changed by hand').waitFor()
    expect(await findBarriers(page)).toEqual([])
    await button('Apply').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
    await page.getByText('Nothing differs: no drift.').waitFor()
    expect(await latchkey.admin('policies.show', { policy: 'policy' })).toMatchObject({ description: null })
    await field('Document (JSON)').fill('latchkey: 1')
    await button('Plan').click()
    await page.getByText('This is not JSON').waitFor()
  })

  test('lists who may sign bundles, and refuses another file before anything changes', async () => {
    await go('#/bundles')
    await button('Add signer').first().click()
    await field('Name').fill('packer')
    const key = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
    await field('Public key (JWK)').fill(JSON.stringify(key))
    await page.getByRole('dialog').getByRole('button', { name: 'Add signer' }).click()
    await page.getByRole('rowheader', { name: 'packer' }).waitFor()
    await field('Bundle file').setInputFiles({ name: 'a.jwt', mimeType: 'text/plain', buffer: Buffer.from('a.b.c') })
    await page.getByText('refused').or(page.getByRole('alert')).first().waitFor()
    expect(await button('Import').count()).toBe(0)
  })

  test('invites a colleague who reads, and whose key ends', async () => {
    await go('#/keys')
    await page.getByRole('link', { name: 'Invite a colleague' }).click()
    await field('Who').fill('reader')
    expect(await field('Role').inputValue()).toBe('viewer')
    await button('Invite').click()
    const text = (await page.getByRole('group', { name: 'invitation' }).textContent()) ?? ''
    expect(text).toContain(`Open ${new URL(latchkey.server.baseUrl).origin}/admin/ and sign in`)
    await button('I have copied it').click()
    const [key = ''] = /sk-lk-v1-\w+/.exec(text) ?? []
    const reader = await openAdminPage(latchkey, { key, hash: '#/policies' })
    await reader.getByText('viewer').first().waitFor()
    expect(await reader.getByRole('link', { name: 'New policy' }).count()).toBe(0)
    await go('#/upstreams', reader)
    await heading('Servers and prices', reader)
    await reader.getByRole('link', { name: 'Set a price' }).waitFor({ state: 'detached' })
    expect(reader.problems).toEqual([])
    await reader.context().close()
    expect(await latchkey.admin('keys.show', { key: 'reader' })).toMatchObject({
      role: 'viewer',
      expires_at: expect.any(String),
    })
  })

  test('duplicates a key with its limits, under another name and with its own secret', async () => {
    const labels = { team: 'support', 'cost-center': '4711' }
    const { hash } = await latchkey.admin<Key>('keys.create', {
      name: 'team',
      limit: 25,
      allowed_models: ['meta/*'],
      labels,
    })
    await go(`#/keys/${hash}`)
    await page.getByText('team=support, cost-center=4711').waitFor()
    await page.getByRole('link', { name: 'Duplicate' }).click()
    await heading('New key')
    await button('Create key').click()
    await button('I have copied it').click()
    await heading('team copy')
    const copy = await latchkey.admin<Key>('keys.show', { key: 'team copy' })
    expect(copy).toMatchObject({ limit: 25, allowed_models: ['meta/*'], usage: 0 })
    expect(copy.hash).not.toBe(hash)
  })

  test('by keyboard alone, a key gets a budget and another secret, and a policy is paused and deleted', async () => {
    const press = (key: string) => page.keyboard.press(key)
    const focused = () =>
      page.evaluate(() => {
        const { activeElement: at } = document
        return (
          at?.getAttribute('aria-label') ??
          at?.closest('main')?.querySelector(`label[for="${at.id}"]`)?.textContent ??
          at?.textContent ??
          ''
        )
      })
    /** Tab leads there, within a view. */
    const tabTo = async (name: string) => {
      for (let presses = 0; presses < 60; presses++) {
        await press('Tab')
        if ((await focused()).trim().startsWith(name)) return
      }
      throw new Error(`Tab does not lead to ${name}`)
    }
    await go('#/keys/new')
    await field('Name').waitFor()
    await tabTo('Name')
    await page.keyboard.type('by keyboard')
    await tabTo('Budget in US dollars')
    await page.keyboard.type('25.50')
    await press('Enter')
    await button('I have copied it').waitFor()
    await press('Tab')
    await tabTo('I have copied it')
    await press('Enter')
    await heading('by keyboard')
    await tabTo('Rotate')
    await press('Enter')
    await tabTo('Rotate key')
    const dialog = page.getByRole('dialog')
    expect(await dialog.textContent()).toMatch(/gets a new secret.*The old secret works for/s)
    expect(await dialog.textContent()).not.toMatch(/management|signed out|text/)
    await press('Enter')
    await page.getByRole('dialog', { name: 'The new secret' }).getByText('by keyboard').waitFor()
    await tabTo('I have copied it')
    await press('Enter')
    await page.getByText('Old secret').waitFor()
    await page.getByText('not used since the rotation').waitFor()
    expect(await latchkey.admin('keys.show', { key: 'by keyboard' })).toMatchObject({
      limit: 25.5,
      previous_until: expect.any(String),
    })
    await go(`#/policies/${latchkey.policy.id}`)
    await heading('policy')
    await tabTo('Enabled')
    await press('Space')
    await page.getByText('Paused policy').waitFor()
    await tabTo('Delete')
    await press('Enter')
    await tabTo('Delete policy')
    await press('Enter')
    await heading('Policies')
  })

  test('nothing was blocked, failed or asked elsewhere meanwhile', () => {
    expect(page.problems).toEqual([])
    expect(readdirSync(latchkey.folder)).not.toContain(backups)
  })
})
