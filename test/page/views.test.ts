// The views of workload identity in a real browser: signing in, the first steps by keyboard, checks while somebody types, tokens, pausing,
// conflicts, and a session that only reads.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { withTypes } from '../../src/admin/run-operation.ts'
import type { Backtest, Exchange, Explanation, Finding, Issuer } from '../../src/admin/transport/response-types.ts'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { audience, type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { findBarriers, type OpenedPage, type Opening, openAdminPage, pick } from '../support/opened-page.ts'

closePagesAfterAll()

describe.skipIf(!hasChromium)('the admin page (needs chromium)', () => {
  let latchkey: Federation
  let page: OpenedPage
  let key: string
  const opened: OpenedPage[] = []
  const open = async (options: Opening = {}) => {
    const one = await openAdminPage(latchkey, options)
    opened.push(one)
    return one
  }
  const go = (hash: string, one = page) => one.evaluate((to) => location.assign(to), hash)
  /** As when somebody comes back to the tab: it asks at once instead of after its three seconds. */
  const wake = (one: OpenedPage) => one.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  const heading = (name: string, one = page) => one.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const newKey = async (name: string, kind = 'management') =>
    (await latchkey.admin<Row & { key: string }>('keys.create', { name, kind })).key

  beforeAll(async () => {
    latchkey = await startFederation()
    key = await newKey('boss')
    page = await open({ key })
  })
  afterAll(async () => {
    await latchkey.stop()
  })

  test('its types are those that the API returns', async () => {
    const run = withTypes(latchkey.server.runByName)
    const organization = 'default'
    const policy = await run('policies.show', { organization, policy: 'policy' })
    const issuer: Issuer = await run('issuers.show', { organization, issuer: 'idp' })
    const { data: explanations } = await run('policies.check', { organization, token: await latchkey.mint() })
    const [explanation]: Explanation[] = explanations
    const [linted] = (await run('policies.lint', { organization, policy: 'policy' })).data
    const findings: Finding[] | undefined = linted?.findings
    const backtest: Backtest = await run('policies.backtest', { organization, policy: 'policy' })
    const { data: exchanges }: { data: Exchange[] } = await run('audit.list', { organization })
    expect([policy.state, issuer.key_source, explanation?.accepted, findings]).toEqual([
      'enabled',
      'discovery',
      true,
      [],
    ])
    expect([backtest.exchanges, exchanges]).toEqual([0, []])
  })

  test('a wrong key is refused, and signing in leads to the address that was opened', async () => {
    const other = await open({ hash: '#/issuers' })
    await other.getByLabel('Management key').fill('sk-lk-v1-wrong')
    await other.getByRole('button', { name: 'Sign in' }).click()
    expect(await other.getByRole('alert').filter({ hasText: 'Request id' }).textContent()).toContain(
      'This does not sign in',
    )
    await other.getByLabel('Management key').fill(key)
    await other.keyboard.press('Enter')
    await heading('Issuers', other)
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.getByLabel('Management key').waitFor()
    await other.context().close()
  })

  test('a link signs in once, and leaves nothing in the address', async () => {
    const { url } = await latchkey.admin<Row & { url: string }>('sessions.link', { key: 'boss' })
    const link = url.slice(url.indexOf('#link=') + '#link='.length)
    const other = await open({ link })
    expect(other.url()).not.toContain(link)
    await other.context().close()
    const again = await open({ hash: `#link=${link}` })
    await again.getByText('This does not sign in').waitFor()
    await again.context().close()
  })

  test('an issuer is added by keyboard alone, with a test before it is saved', async () => {
    await go('#/issuers/new?then=start')
    await heading('Add issuer')
    await page.getByLabel('Name').focus()
    await page.keyboard.type('second')
    await page.keyboard.press('Tab')
    // The same issuer under its other name is another issuer.
    await page.keyboard.type(latchkey.issuerUrl.replace('127.0.0.1', 'localhost'))
    await page.getByText('The issuer does not work yet').waitFor()
    await page.keyboard.press('Enter')
    await heading('Get started')
    expect(await latchkey.admin('issuers.show', { issuer: 'second' })).toMatchObject({ key_source: 'discovery' })
  })

  test('a policy is created by keyboard alone, and the picker writes its rules', async () => {
    await latchkey.admin('issuers.add', { name: 'github', issuer_url: 'https://token.actions.githubusercontent.com' })
    await go('#/policies/new')
    await page.getByLabel('Name', { exact: true }).focus()
    await page.keyboard.type('deploy')
    await page.keyboard.press('Tab')
    await page.keyboard.type('github')
    for (let presses = 0; presses < 2; presses++) await page.keyboard.press('Tab')
    await page.keyboard.type('target')
    for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Tab')
    await page.keyboard.type('runs the builds')
    for (let presses = 0; presses < 2; presses++) await page.keyboard.press('Tab')
    await page.keyboard.type('797215326')
    for (let presses = 0; presses < 4; presses++) await page.keyboard.press('Tab')
    await page.keyboard.type('main')
    expect(await page.getByLabel('Condition').inputValue()).toBe(
      'claims.repository_id == "797215326" && claims.ref == "refs/heads/main"',
    )
    await page.getByText('The linter found no stranger').waitFor()
    await page.keyboard.press('Enter')
    await heading('deploy')
    expect(await latchkey.admin('policies.show', { policy: 'deploy' })).toMatchObject({
      subject: null,
      key_name: 'target',
      description: 'runs the builds',
    })
  })

  test('a finding of the linter blocks with a token that would pass, until somebody says why', async () => {
    await go('#/policies/new')
    await page.getByLabel('Name', { exact: true }).fill('wide')
    await pick(page, 'Issuer', 'github')
    await pick(page, 'Acts as key', 'target')
    await page.getByLabel('Condition').fill('claims.environment == "production"')
    await page.getByText('github-environment-alone').waitFor()
    await page.getByText('A token that would pass').click()
    expect(await page.getByRole('group', { name: 'token that would pass' }).textContent()).toContain('mallory')
    const create = page.getByRole('button', { name: 'Create policy' })
    expect(await create.isDisabled()).toBe(true)
    await page.getByLabel('Condition').fill('claims.environment ==')
    await page.locator('#f-condition-error').filter({ hasText: /\^/ }).waitFor()
    expect(await create.isDisabled()).toBe(true)
    await page.getByLabel('Condition').fill('claims.environment == "production"')
    await page.getByLabel('If this is intended').fill('a demonstration')
    await page.getByText('Allowed because: a demonstration').waitFor()
    await create.click()
    await heading('wide')
  })

  test('who gets tokens of an issuer is asked with the first policy that needs it, and kept with the issuer', async () => {
    const { id } = await latchkey.admin('issuers.add', { name: 'sso', issuer_url: 'https://sso.example.com' })
    await go(`#/policies/new?issuer=${id}`)
    await page.getByLabel('Name', { exact: true }).fill('every workload')
    await pick(page, 'Acts as key', 'target')
    await page.getByLabel('Condition').fill('"llm" in audience')
    await page.getByLabel('Audience').fill('llm')
    const checks = page.getByRole('complementary', { name: 'Checks' })
    await checks.getByText('shared-unknown').waitFor()
    expect(await page.getByRole('button', { name: 'Create policy' }).isDisabled()).toBe(true)
    await checks.getByRole('button', { name: 'No, only my organization' }).click()
    await checks.getByText('shared-unknown').waitFor({ state: 'detached' })
    await checks.getByText('vacuous').waitFor()
    await page.getByRole('button', { name: 'Create policy' }).click()
    await heading('every workload')
    await go(`#/issuers/${id}/edit`)
    expect(await page.getByLabel('No', { exact: true }).isChecked()).toBe(true)
    await page.getByLabel('Yes', { exact: true }).check({ force: true })
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('With this change, the policy "every workload" is too wide: vacuous').waitFor()
    expect(await latchkey.admin('issuers.show', { issuer: id })).toMatchObject({ shared: false })
    await go('#/issuers')
    await page.getByRole('button', { name: 'Discard it' }).click()
    await heading('Issuers')
    await latchkey.admin('policies.delete', { policy: 'every workload' })
    await latchkey.admin('issuers.delete', { issuer: id })
  })

  test('a token is decoded here and explained: accepted, and refused with what to do', async () => {
    await go('#/try')
    await page.getByText('Nothing is exchanged or stored').waitFor()
    await page.getByLabel('Token (JWT)').fill(await latchkey.mint())
    expect(await page.getByRole('group', { name: 'payload' }).textContent()).toContain('"sub": "workload-1"')
    await page.getByRole('button', { name: 'Check the token' }).click()
    await page.getByText('would be accepted').waitFor()
    await page.getByLabel('Token (JWT)').fill(await latchkey.mint({ aud: 'another' }))
    await page.getByRole('button', { name: 'Check the token' }).click()
    await page.getByText('would be refused').first().waitFor()
    const row = page.getByRole('row', { name: /^audience/ }).first()
    expect(await row.textContent()).toContain('audience_mismatch')
    expect(await row.textContent()).toContain("Request the token for the policy's audience")
  })

  test('a policy is made from a token that was pasted, and the token is kept nowhere', async () => {
    const token = await latchkey.mint({ sub: 'workload-7', team: 'red' })
    await page.getByLabel('Token (JWT)').fill(token)
    await page.getByRole('button', { name: 'Create a policy from this token' }).click()
    await heading('New policy')
    await page.getByLabel('Name', { exact: true }).fill('from a token')
    expect(await page.getByLabel('Issuer', { exact: true }).inputValue()).toBe('idp')
    expect(await page.getByLabel('Subject').inputValue()).toBe('workload-7')
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain(token.slice(0, 20))
    await pick(page, 'Acts as key', 'target')
    await page.getByText('The linter found no stranger').waitFor()
    await page.getByRole('button', { name: 'Create policy' }).click()
    await heading('from a token')
    const made = await latchkey.admin<Row & { tests: object[] }>('policies.show', { policy: 'from a token' })
    expect(made).toMatchObject({ subject: 'workload-7', audience })
    expect(made.tests).toEqual([
      { name: 'the token that it was made from', claims: { sub: 'workload-7' }, expect: 'allow' },
    ])
    await latchkey.admin('policies.delete', { policy: 'from a token' })
  })

  test('an issuer is found by keyboard alone, and a condition is completed with the claims of its tokens', async () => {
    await go('#/policies/new')
    const issuer = page.getByRole('combobox', { name: 'Issuer' })
    await issuer.focus()
    await page.keyboard.press('ArrowDown')
    await page.getByRole('option', { name: 'idp' }).waitFor()
    expect(await issuer.getAttribute('aria-expanded')).toBe('true')
    await page.keyboard.type('id')
    await page.getByRole('option', { name: 'second' }).waitFor({ state: 'detached' })
    expect(await page.getByRole('option', { selected: true }).textContent()).toContain('idp')
    expect(await findBarriers(page)).toEqual([])
    await page.keyboard.press('Enter')
    expect([await issuer.inputValue(), await issuer.getAttribute('aria-expanded')]).toEqual(['idp', 'false'])
    const condition = page.getByLabel('Condition')
    await condition.focus()
    await page.keyboard.type('sub')
    await page.getByRole('option', { name: /^subject/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.keyboard.type(' == "a"\n&& true')
    expect(await condition.inputValue()).toBe('subject == "a"\n&& true')
    expect((await page.locator('.editor pre').textContent())?.trim()).toBe('1\n2')
    await issuer.fill('nobody')
    await page.getByText('Nothing has this name').waitFor()
    await page.keyboard.press('Escape')
    expect(await issuer.inputValue()).toBe('idp')
    await go('#/start')
    await page.getByRole('button', { name: 'Discard it' }).click()
  })

  test('the first exchange is noticed without a reload, and so are those that a pause refuses', async () => {
    await go('#/start')
    await page.getByText('Waiting for the first exchange').waitFor()
    expect((await latchkey.exchange(await latchkey.mint())).status).toBe(200)
    await page.getByText('The latest exchange issued a token').waitFor()
    await go('#/policies')
    const enabled = page.getByRole('switch', { name: 'Enabled: policy' })
    await enabled.click()
    await page
      .getByRole('row', { name: /^Choose policy/ })
      .getByText('paused')
      .waitFor()
    await go('#/exchanges')
    await page.getByRole('cell', { name: 'issued' }).first().waitFor()
    expect((await latchkey.exchange(await latchkey.mint())).status).toBe(400)
    await wake(page)
    await page.getByRole('button', { name: '1 new: show' }).click()
    const refused = page.getByRole('row').filter({ hasText: 'policy_paused' })
    await refused.waitFor()
    expect(await refused.textContent()).toContain('Resume the policy.')
    await latchkey.admin('policies.resume', { policy: 'policy' })
  })

  test('a recorded exchange becomes a test of its policy', async () => {
    await page.getByRole('cell', { name: 'issued' }).first().click()
    await heading('Exchange')
    await page.getByRole('button', { name: 'Make a test of this exchange' }).click()
    await page.getByRole('button', { name: 'Add the test' }).click()
    await page.getByText('The test was added to').waitFor()
    expect(await latchkey.admin('policies.show', { policy: 'policy' })).toMatchObject({
      tests: [{ claims: { sub: 'workload-1' }, expect: 'allow' }],
    })
    await latchkey.admin('policies.update', { policy: 'policy', tests: null })
    await page.getByRole('button', { name: 'Create a policy from this exchange' }).click()
    await heading('New policy')
    await page.getByLabel('Issuer', { exact: true }).and(page.locator('[aria-expanded]')).waitFor()
    expect(await page.getByLabel('Issuer', { exact: true }).inputValue()).toBe('idp')
    expect(await page.getByLabel('Subject').inputValue()).toBe('workload-1')
    await page.getByLabel('Condition').focus()
    await page.keyboard.type('claims.')
    await page.getByRole('option', { name: /^claims\.aud/ }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByLabel('Condition').fill('')
  })

  test('of two editors the second one sees both versions, and decides', async () => {
    await go(`#/policies/${latchkey.policy.id}/edit`)
    await page.getByLabel('Audience').waitFor()
    await page.getByText('Past exchanges').waitFor()
    await latchkey.admin('policies.update', { policy: 'policy', max_lifetime_seconds: 300 })
    await page.getByLabel('Name', { exact: true }).fill('mine')
    await page.getByRole('button', { name: 'Save' }).click()
    const alert = page.getByRole('alert').filter({ hasText: 'Somebody else changed this policy' })
    await alert.waitFor()
    expect(await alert.textContent()).toContain('Lifetime of access tokens')
    expect(await latchkey.admin('policies.show', { policy: 'policy' })).toMatchObject({ max_lifetime_seconds: 300 })
    await page.getByRole('button', { name: 'Take their version' }).click()
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('policy')
  })

  test('of two editors of an issuer who changed different fields both are saved', async () => {
    await go(`#/issuers/${latchkey.issuer.id}/edit`)
    await page.getByLabel('Name', { exact: true }).fill('ours')
    await latchkey.admin('issuers.update', { issuer: 'idp', clock_skew_seconds: 5 })
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    const alert = page.getByRole('alert').filter({ hasText: 'Somebody else changed this issuer' })
    await alert.waitFor()
    expect(await alert.textContent()).toContain('Clock skew in seconds')
    await page.getByRole('button', { name: 'Save both' }).click()
    await heading('ours')
    expect(await latchkey.admin('issuers.show', { issuer: 'ours' })).toMatchObject({ clock_skew_seconds: 5 })
  })

  test('deleting says what it stops, and Escape keeps the policy', async () => {
    await go(`#/policies/${latchkey.policy.id}`)
    await page.getByRole('switch', { name: 'Enabled' }).click()
    await page.getByRole('button', { name: 'Undo' }).last().waitFor()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog', { name: 'Delete this policy?' }).getByText('stop at once').waitFor()
    await page.keyboard.press('Escape')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Delete')
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete policy' }).click()
    await heading('Policies')
    await page.getByText('Deleted the policy policy').waitFor()
    expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0)
    expect((await latchkey.admin<{ data: Row[] }>('policies.list')).data.map(({ name }) => name)).not.toContain(
      'policy',
    )
  })

  test('a session that only reads has no buttons that change something', async () => {
    const reader = await open({ key: await newKey('reader', 'management_read_only') })
    await reader.getByText('viewer').waitFor()
    const policy = await latchkey.admin('policies.show', { policy: 'deploy' })
    for (const hash of ['#/policies', `#/policies/${policy.id}`, '#/issuers', `#/issuers/${latchkey.issuer.id}`]) {
      await go(hash, reader)
      await reader.getByText('github').first().or(reader.getByText('Issuer URL (iss)')).waitFor()
      const buttons = await reader
        .locator(
          'main button:not(thead button, .exports button, .fold-filters, [role=tab]), main [role=switch], main a.primary',
        )
        .allInnerTexts()
      expect({ hash, buttons: buttons.filter((text) => text.trim() !== '') }).toEqual({ hash, buttons: [] })
    }
    await go('#/policies/new', reader)
    await reader.getByText('The role viewer may not do this').waitFor()
  })

  test('an operator gets the buttons of keys, and none of policies, issuers, or a key above', async () => {
    const duty = await open({
      key: (await latchkey.admin<Row & { key: string }>('keys.create', { name: 'duty', role: 'operator' })).key,
    })
    await go('#/keys', duty)
    await duty.getByRole('link', { name: 'Create key' }).waitFor()
    await go('#/policies', duty)
    await duty.getByText('deploy').first().waitFor()
    expect(await duty.locator('main [role=switch], main a.primary').count()).toBe(0)
    const { hash } = await latchkey.admin<Row & { hash: string }>('keys.create', { name: 'chief', role: 'admin' })
    await go(`#/keys/${hash}`, duty)
    await duty.getByText('chief').first().waitFor()
    expect(await duty.getByRole('button', { name: 'Delete' }).count()).toBe(0)
    const { hash: plain } = await latchkey.admin<Row & { hash: string }>('keys.create', { name: 'plain' })
    await go(`#/keys/${plain}`, duty)
    await duty.getByRole('button', { name: 'Delete' }).waitFor()
  })

  test('a session ends with its key, and the page asks to sign in again', async () => {
    const guest = await open({ key: await newKey('guest') })
    await latchkey.admin('keys.disable', { keys: ['guest'] })
    await wake(guest)
    await guest.getByText('Your session has ended').waitFor()
  })

  test('nothing was blocked, failed or asked elsewhere meanwhile', () => {
    expect(opened.length).toBeGreaterThan(4)
    expect(opened.flatMap(({ problems }) => problems)).toEqual([])
  })
})
