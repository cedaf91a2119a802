// Every view of the admin page with something to show, most of it with hostile texts, for tests and pictures of all of them.
import type { Page } from 'playwright-core'
import { question } from './inference.ts'
import type { Federation, Row } from './latchkey.ts'

/** Markup, a script, an override of the direction that would swallow what follows, and a word without end. */
export const hostile = `</bdi><img src=x onerror=alert(1)><script>alert(1)</script>\u202egnp.\u2066exe ${'W'.repeat(200)}`
/** Names have no control characters, but may read from right to left. */
const name = `<script>alert(1)</script> שלום ${'W'.repeat(60)}`

type Key = Row & { key: string; hash: string }

/** Adds what the views show, and returns their addresses: all of the menu, and forms and details of each kind. */
export async function addViews({ admin, server, ...latchkey }: Federation): Promise<string[]> {
  const condition = `claims.note == ${JSON.stringify(hostile)} && claims.repository_id == "1"`
  const evil = await admin('policies.create', {
    ...{ name, issuer: 'idp', key: 'target', audience: hostile, condition },
    tests: [{ name, claims: { note: hostile }, expect: 'condition_error' }],
  })
  await latchkey.exchange(await latchkey.mint())
  const refused = await latchkey.exchange(await latchkey.mint({ sub: hostile }))
  const { request_id: exchange } = (await refused.json()) as { request_id: string }
  await admin('prices.set', { prices: [{ model: '*', prompt: 1_000, completion: 1_000 }] })
  const gpu = await admin('upstreams.add', { name, base_url: 'http://127.0.0.1:1/v1', models: ['unused'] })
  const key = await admin<Key>('keys.create', { name, limit: 5, limit_reset: 'monthly', labels: { team: name } })
  const budget = await admin('budgets.create', { name, each: 'key', windows: [{ per: 'month', usd: 1 }] })
  await admin('webhooks.add', { name, url: 'https://9.9.9.9/hook' })
  for (const temperature of [0.2, 0.7])
    await admin('presets.save', {
      ...{ preset: 'support', dialect: 'chat' },
      body: JSON.stringify({ model: 'm', temperature, messages: [{ role: 'system', content: hostile }] }),
    })
  await admin('presets.update', { preset: 'support', description: hostile })
  const poor = await admin<Key>('keys.create', { name: 'poor', limit: 0 })
  let request = ''
  for (const { key: secret } of [key, poor]) {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ ...question, model: '<script>alert(1)</script>' })
    const response = await fetch(`${server.baseUrl}/chat/completions`, { method: 'POST', headers, body })
    await response.text()
    if (secret === key.key) request = response.headers.get('x-request-id') ?? ''
  }
  return [
    ...['#/overview', '#/start', '#/policies', `#/policies/${latchkey.policy.id}`, `#/policies/${evil.id}`],
    ...[`#/policies/${evil.id}?tab=rules`, '#/policies/new', `#/policies/${evil.id}/edit`],
    ...['#/issuers', `#/issuers/${latchkey.issuer.id}`, '#/issuers/new', '#/try', '#/exchanges'],
    ...[`#/exchanges/${exchange}`, '#/bundles', '#/keys', `#/keys/${key.hash}`, `#/keys/${key.hash}/edit`],
    ...['#/keys/invite', '#/budgets', `#/budgets/${budget.id}`, `#/budgets/${budget.id}/edit`, '#/presets'],
    ...['#/presets/support', '#/presets/support?tab=versions', '#/presets/support/edit', '#/requests'],
    ...[`#/requests/${request}`, '#/requests?tab=refused', '#/usage?by=subject', '#/upstreams'],
    ...[`#/upstreams/${gpu.id}`, '#/upstreams/prices/*', '#/changes', '#/audit-log', '#/documents'],
    ...['#/organization', '#/organization/edit', '#/webhooks', '#/system', '#/manual/policies'],
  ]
}

/** Opens a view, and waits until it is whole. @throws Error for one that stays without its data */
export async function showView(page: Page, hash: string): Promise<void> {
  await page.evaluate((to) => location.assign(to), hash)
  await page.locator('.view > :not(.loading)').first().waitFor()
  const whole = page.locator('.loading').first().waitFor({ state: 'detached' })
  await whole.catch((cause) => {
    throw new Error(`The view ${hash} stays without its data`, { cause })
  })
}
