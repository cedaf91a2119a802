// Forms of the page in a real browser: nothing that somebody typed is lost or replaced without a question, and nothing that another admin
// saved is overwritten without one.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { findBarriers, type OpenedPage, openAdminPage, pick } from '../support/opened-page.ts'

type Key = Row & { key: string; hash: string; limit: number | null }

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Federation
  let page: OpenedPage
  let boss: Key
  const go = (hash: string) => page.evaluate((to) => location.assign(to), hash)
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const field = (name: string) => page.getByLabel(name, { exact: true })
  const newKey = (name: string, more = {}) => latchkey.admin<Key>('keys.create', { name, ...more })
  /** Opens a form. */
  const edit = async (hash: string, title: string) => {
    await go(hash)
    await heading(title)
    await page.locator('main form').waitFor()
  }
  /** Leaves a form, and what was typed there. */
  const discard = async () => {
    await go('#/presets')
    await button('Discard it').click()
    await heading('Presets')
  }
  /** Requests of the page that change something. */
  const sent: { method: string; path: string; body: unknown }[] = []

  beforeAll(async () => {
    latchkey = await startFederation()
    boss = await newKey('boss', { kind: 'management' })
    page = await openAdminPage(latchkey, { key: boss.key, viewport: { width: 1280, height: 700 } })
    page.on('request', (request) => {
      const body = request.postDataJSON() as { dry_run?: boolean; drafts?: unknown } | null
      const path = new URL(request.url()).pathname
      const isTrial = body?.dry_run !== undefined || body?.drafts !== undefined || path.endsWith('/backtest')
      if (request.method() !== 'GET' && !isTrial) sent.push({ method: request.method(), path, body })
    })
  })
  afterAll(() => latchkey.stop())

  describe('another admin', () => {
    test('who was first is shown in view and with the focus, and is replaced only when asked', async () => {
      await edit(`#/policies/${latchkey.policy.id}/edit`, 'Edit policy')
      await latchkey.admin('policies.update', { policy: 'policy', max_lifetime_seconds: 300, required_scope: 'theirs' })
      await page.getByText('More: attribution').click()
      await field('Required scope optional').fill('mine')
      await field('Name').fill('renamed')
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
      await button('Save').click()
      const notice = page.getByRole('group', { name: 'Not saved' })
      await notice.waitFor()
      await page.waitForFunction(() => document.activeElement?.id === 'trouble')
      const top = (await notice.boundingBox())?.y ?? -1
      expect(top >= 0 && top < 700).toBe(true)
      const says = ((await notice.textContent()) ?? '').replaceAll(/\s+/g, ' ')
      expect(says).toMatch(/Required scope.*When you opened it ?– ?Theirs ?theirs ?In your form ?mine/)
      expect(says).toMatch(/Saved by .*(?:ago|now)/)
      expect(says).toMatch(/Lifetime of access tokens.*When you opened it ?900 ?Theirs ?300 ?In your form ?theirs/)
      expect(await findBarriers(page)).toEqual([])
      await field('Name').press('Enter')
      await page.waitForFunction(() => document.activeElement?.id === 'trouble')
      expect(await latchkey.admin('policies.show', { policy: 'policy' })).toMatchObject({ required_scope: 'theirs' })
      sent.length = 0
      await button('Replace theirs').click()
      await heading('renamed')
      expect(sent.filter(({ method }) => method === 'PATCH').map(({ body }) => body)).toEqual([
        { name: 'renamed', required_scope: 'mine' },
      ])
      const saved = await latchkey.admin('policies.show', { policy: 'renamed' })
      expect(saved).toMatchObject({ required_scope: 'mine', max_lifetime_seconds: 300 })
      await latchkey.admin('policies.update', { policy: 'renamed', name: 'policy', required_scope: null })
    })

    test('who only paused the policy stands in nobody’s way', async () => {
      await edit(`#/policies/${latchkey.policy.id}/edit`, 'Edit policy')
      const above = page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link')
      expect(await above.allTextContents()).toEqual(['Policies', 'policy'])
      await latchkey.admin('policies.pause', { policy: 'policy' })
      await field('Name').fill('paused one')
      await button('Save').click()
      await heading('paused one')
      await latchkey.admin('policies.resume', { policy: 'paused one' })
      await latchkey.admin('policies.update', { policy: 'paused one', name: 'policy' })
    })

    test('who saved a version of a preset meanwhile is not overwritten, and a new preset takes no slug that exists', async () => {
      const body = (temperature: number, seed?: number) =>
        JSON.stringify({ model: 'm', temperature, ...(seed && { seed }), messages: [{ role: 'system', content: 'x' }] })
      const save = (temperature: number, seed?: number) =>
        latchkey.admin('presets.save', { preset: 'shared', dialect: 'chat', body: body(temperature, seed) })
      await save(0.1)
      await edit('#/presets/shared/edit', 'New version of shared')
      await save(0.9, 7)
      await field('Body of a chat completions request').fill(body(0.5))
      await button('Create version').click()
      await page.getByText('Somebody else changed this preset').waitFor()
      expect(await latchkey.admin('presets.show', { preset: 'shared' })).toMatchObject({
        designated_version: { version: 2, config: { temperature: 0.9 } },
      })
      await button('Replace theirs').click()
      await heading('shared')
      expect(await latchkey.admin('presets.show', { preset: 'shared' })).toMatchObject({
        designated_version: { version: 3, config: { temperature: 0.5, seed: 7 }, system_prompt: 'x' },
      })
      await edit('#/presets/shared/edit', 'New version of shared')
      const prompt = page.getByLabel('System prompt')
      expect(await prompt.inputValue()).toBe('x')
      await prompt.fill('First.\n\nThen "quoted".')
      expect((await page.locator('.editor pre').first().textContent())?.trim()).toBe('1\n2\n3')
      await button('Create version').click()
      await heading('shared')
      expect(await latchkey.admin('presets.show', { preset: 'shared' })).toMatchObject({
        designated_version: { version: 4, config: { seed: 7 }, system_prompt: 'First.\n\nThen "quoted".' },
      })
      await edit('#/presets/new', 'New preset')
      expect(await page.getByLabel('System prompt').inputValue()).toBe('')
      await field('Slug').fill('shared')
      await button('Create preset').click()
      await page.getByText('A preset "shared" exists').waitFor()
      await discard()
    })
  })

  describe('the picker of platforms', () => {
    test('leaves rules that somebody wrote, and what it replaces when asked comes back', async () => {
      const [subject, condition] = ['repo:acme/app:ref:refs/heads/main', 'claims.actor == "octocat"']
      await latchkey.admin('issuers.add', { name: 'github', issuer_url: 'https://token.actions.githubusercontent.com' })
      await edit('#/policies/new', 'New policy')
      await pick(page, 'Issuer', 'github')
      await field('Subject').fill(subject)
      await field('Condition').fill(condition)
      await field('Organization').fill('acme')
      await field('Repository').fill('app')
      await field('Branch').fill('main')
      expect([await field('Subject').inputValue(), await field('Condition').inputValue()]).toEqual([subject, condition])
      await button('Replace subject and condition').click()
      expect(await field('Condition').inputValue()).toContain('claims.repository == "acme/app"')
      await button('Undo').click()
      expect([await field('Subject').inputValue(), await field('Condition').inputValue()]).toEqual([subject, condition])
      const add = await page.getByRole('link', { name: 'Add one' }).getAttribute('href')
      expect(add).toBe('#/issuers/new?platform=github')
      await discard()
      await edit(add ?? '', 'Add issuer')
      expect(await field('Issuer URL').inputValue()).toBe('https://token.actions.githubusercontent.com')
      expect(await field('Name').inputValue()).toBe('GitHub')
    })

    test('is of the form alone: what another admin saved does not change it', async () => {
      const rules = { issuer: 'github', key: latchkey.key.id, audience: 'a', subject: 'repo:acme/app:*' }
      const { id } = await latchkey.admin<Row>('policies.create', { name: 'deploy', ...rules })
      await edit(`#/policies/${id}/edit`, 'Edit policy')
      await field('Organization').waitFor()
      await latchkey.admin('policies.update', { policy: id, description: 'theirs' })
      await field('Description optional').fill('mine')
      await button('Save').click()
      const notice = page.getByRole('group', { name: 'Not saved' })
      await notice.waitFor()
      expect(await notice.textContent()).toContain('theirs')
      expect(await notice.textContent()).not.toMatch(/platform/i)
      await discard()
    })
  })

  describe('a number', () => {
    test('is sent as it was typed, or refused at its field with how to write it', async () => {
      await edit('#/keys/new', 'New key')
      await field('Name').fill('numbers')
      const limit = field('Budget in US dollars optional')
      const rate = field('Requests a minute optional')
      sent.length = 0
      for (const [typed, says] of [
        ['25,50', 'write 25.50'],
        ['1e3', 'is not a number'],
        ['1.000', 'write 1000 or 1.0000'],
        ['1,000', 'write 1000 or 1.0000'],
        ['1.000.000', 'write 1000000'],
        ['1 250,50', 'write 1250.50'],
        ['1’250.50', 'write 1250.50'],
        ['-5', 'is not a number'],
        ['0x10', 'is not a number'],
      ] as const) {
        await limit.fill(typed)
        await button('Create key').click()
        await page.locator('#f-limit-error').filter({ hasText: says }).waitFor()
        await page.waitForFunction(() => document.activeElement?.id === 'f-limit')
      }
      await limit.fill('25.50')
      for (const typed of ['1e', '60.5', '1.000']) {
        await rate.fill(typed)
        await button('Create key').click()
        await page.locator('#f-requests_per_minute-error').filter({ hasText: typed }).waitFor()
      }
      expect(sent).toEqual([])
      await rate.fill('60')
      await button('Create key').click()
      await button('I have copied it').click()
      await heading('numbers')
      expect(await latchkey.admin('keys.show', { key: 'numbers' })).toMatchObject({
        limit: 25.5,
        requests_per_minute: 60,
      })
    })

    test('that is stored reads back as itself', async () => {
      const { hash } = await newKey('precise', { limit: 1.125 })
      await edit(`#/keys/${hash}/edit`, 'Edit key')
      expect(await field('Budget in US dollars optional').inputValue()).toBe('1.1250')
      await field('Name').fill('precise too')
      await button('Save').click()
      await heading('precise too')
      expect(await latchkey.admin('keys.show', { key: 'precise too' })).toMatchObject({ limit: 1.125 })
    })
  })

  test('two presses of "Create policy" send one POST', async () => {
    await edit('#/policies/new', 'New policy')
    await field('Name').fill('once')
    await pick(page, 'Issuer', 'idp')
    await pick(page, 'Acts as key', 'target')
    await field('Subject').fill('once')
    await page.getByText('The linter found no stranger').waitFor()
    sent.length = 0
    await page.evaluate(() => {
      const form = document.querySelector('main form') as HTMLFormElement
      form.requestSubmit()
      form.requestSubmit()
    })
    await heading('once')
    expect(sent.filter(({ method, path }) => method === 'POST' && path.endsWith('/policies'))).toHaveLength(1)
  })

  describe('typed text', () => {
    test('is kept by a link and Back until somebody decides, and is there again after a reload', async () => {
      await go('#/issuers')
      await heading('Issuers')
      await edit('#/issuers/new', 'Add issuer')
      await field('Name').fill('half an issuer')
      await page.getByRole('link', { name: 'Presets' }).click()
      await button('Stay').click()
      await page.waitForFunction(() => location.hash === '#/issuers/new')
      expect(await field('Name').inputValue()).toBe('half an issuer')
      await page.evaluate(() => history.back())
      await page.keyboard.press('Tab')
      await page.getByRole('dialog').getByText('What you typed is not saved').waitFor()
      await page.keyboard.press('Escape')
      await page.waitForFunction(() => location.hash === '#/issuers/new')
      expect(await field('Name').inputValue()).toBe('half an issuer')
      let asked = ''
      page.once('dialog', (dialog) => {
        asked = dialog.type()
        void dialog.accept()
      })
      await page.reload()
      expect(asked).toBe('beforeunload')
      await page.getByText('You typed this before').waitFor()
      expect(await field('Name').inputValue()).toBe('half an issuer')
      await page.getByRole('link', { name: 'Presets' }).click()
      await button('Leave and keep the draft').click()
      await heading('Presets')
      await edit('#/issuers/new', 'Add issuer')
      expect(await field('Name').inputValue()).toBe('half an issuer')
      await button('Discard the draft').click()
      await page.getByText('You typed this before').waitFor({ state: 'detached' })
      expect(await field('Name').inputValue()).toBe('')
      await go('#/presets')
      await heading('Presets')
    })

    test('that looks like a secret is in no draft', async () => {
      await edit('#/issuers/new', 'Add issuer')
      await field('Name').fill('a pasted key')
      await page.getByText('Pasted key set').click()
      await field('Key set (JWKS)').fill('{"keys":[{"kty":"EC","d":"very-private"}]}')
      const kept = await page.evaluate(() => JSON.stringify(sessionStorage))
      expect(kept).toContain('a pasted key')
      expect(kept).not.toContain('very-private')
      await discard()
    })

    test('that is the secret of a client is in no draft either, and is stored without being shown', async () => {
      await edit(`#/issuers/${latchkey.issuer.id}/edit`, 'Edit issuer')
      await page.getByText('Sign-in of people to this page').click()
      await field('Client ID for this page optional').fill('page')
      await field('How this page proves to be the client').selectOption('with a secret')
      await field('Secret of the client optional').fill('of-the-client')
      const kept = await page.evaluate(() => Object.values(sessionStorage).join())
      expect([kept.includes('"page_client_id":"page"'), kept.includes('of-the-client')]).toEqual([true, false])
      await button('Save').click()
      await heading('idp')
      expect(await latchkey.admin('issuers.show', { issuer: 'idp' })).toMatchObject({
        ...{ page_client_id: 'page', page_authentication: 'secret', has_page_secret: true },
      })
      await edit(`#/issuers/${latchkey.issuer.id}/edit`, 'Edit issuer')
      expect(await field('Secret of the client optional').inputValue()).toBe('')
      await page.getByText('Sign-in of people to this page').click()
      await field('How this page proves to be the client').selectOption('not at all: a public client')
      // With it, the page would offer that provider first.
      await field('Client ID for this page optional').fill('')
      await button('Save').click()
      await heading('idp')
      expect(await latchkey.admin('issuers.show', { issuer: 'idp' })).toMatchObject({ has_page_secret: false })
    })

    test('outlives the end of the session: signing in again comes over it', async () => {
      await edit('#/keys/new', 'New key')
      await field('Name').fill('still here')
      const { data } = await latchkey.admin<{ data: Row[] }>('sessions.list')
      for (const { id } of data) await latchkey.admin('sessions.end', { session: id })
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
      await page.getByText('Your session has ended').waitFor()
      for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Escape')
      await field('Management key').fill(boss.key)
      await page.keyboard.press('Enter')
      await field('Management key').waitFor({ state: 'detached' })
      expect(await field('Name').inputValue()).toBe('still here')
      await button('Create key').click()
      await button('I have copied it').click()
      await heading('still here')
    })

    test('outlives the sign-in of another key in another tab, and belongs to its own key', async () => {
      const { key } = await newKey('second boss', { kind: 'management' })
      await edit('#/keys/new', 'New key')
      await field('Name').fill('mine alone')
      const other = await page.context().newPage()
      await other.goto(page.url().replace(/#.*/, '#/'))
      await other.locator('#navigation').waitFor({ state: 'attached' })
      await other.getByRole('button', { name: 'Sign out' }).click()
      await other.getByLabel('Management key').fill(key)
      await other.keyboard.press('Enter')
      await other.locator('#navigation').waitFor({ state: 'attached' })
      await page.getByText('Another tab signed in as').waitFor()
      await button('Go on as second boss').click()
      await heading('New key')
      await field('Name').waitFor()
      expect(await field('Name').inputValue()).toBe('')
      await button('Sign out').click()
      await field('Management key').waitFor()
      expect(await page.evaluate(() => Object.keys(sessionStorage))).toEqual([])
      await other.close()
    })
  })

  test('nothing was blocked or failed meanwhile', () => {
    expect(page.problems).toEqual([])
  })
})
