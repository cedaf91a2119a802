// The official client, @openrouter/sdk: budgets of workspaces, which are budgets like any other.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { OpenRouter } from '@openrouter/sdk'
import {
  BadRequestResponseError,
  NotFoundResponseError,
  UnauthorizedResponseError,
} from '@openrouter/sdk/models/errors'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

// The client would send it where a test means to send no credential.
delete process.env.OPENROUTER_API_KEY

type Key = Row & { key: string }
let latchkey: Inference
let workspace: Row
let root: OpenRouter
const clientWith = (apiKey?: string) =>
  new OpenRouter({ serverURL: latchkey.server.baseUrl, apiKey, retryConfig: { strategy: 'none' } })
beforeAll(async () => {
  latchkey = await startInference()
  workspace = await latchkey.admin('workspaces.create', { name: 'research' })
  root = clientWith((await latchkey.admin<Key>('keys.create', { name: 'root', kind: 'management' })).key)
})
afterAll(() => latchkey.stop())

const set = (interval: 'daily' | 'weekly' | 'monthly' | 'lifetime', limitUsd: number, workspaceRef = 'research') =>
  root.workspaces.setBudget({ workspaceRef, interval, upsertWorkspaceBudgetRequest: { limitUsd } })
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('workspaces', () => {
  test('set, get, list and delete budgets by interval, with the workspace as id or name', async () => {
    const { data: made } = await set('monthly', 20)
    expect(made).toMatchObject({ workspaceId: workspace.id, limitUsd: 20, resetInterval: 'monthly' })
    const { data: changed } = await set('monthly', 30, workspace.id)
    expect(changed).toMatchObject({ id: made.id, limitUsd: 30 })
    const { data: forever } = await set('lifetime', 100)
    expect(forever.resetInterval).toBeNull()
    const { data: listed } = await root.workspaces.listBudgets({ workspaceRef: 'research' })
    expect(listed.map(({ limitUsd }) => limitUsd)).toEqual([30, 100])
    expect(await root.workspaces.getBudget({ workspaceRef: 'research', interval: 'monthly' })).toMatchObject({
      data: { id: made.id },
    })
    const ofAll = await latchkey.admin<{ data: Row[] }>('budgets.list')
    expect(ofAll.data.map(({ name, applies_to }) => [name, applies_to])).toContainEqual([
      'workspace research monthly',
      { workspaces: ['research'] },
    ])
    expect(await root.workspaces.deleteBudget({ workspaceRef: 'research', interval: 'lifetime' })).toEqual({
      deleted: true,
    })
    const gone = root.workspaces.getBudget({ workspaceRef: 'research', interval: 'lifetime' })
    expect(await failureOf(gone)).toBeInstanceOf(NotFoundResponseError)
  })

  test('refuse requests of the workspace once it is spent, and no others', async () => {
    latchkey.upstream.answer.current = () => Response.json({ ...answer, usage: { ...answer.usage, cost: 2 } })
    const [inside, outside] = [
      await latchkey.admin<Key>('keys.create', { name: 'inside', workspace: 'research' }),
      await latchkey.admin<Key>('keys.create', { name: 'outside' }),
    ]
    await set('daily', 1)
    const ask = async ({ key }: Key) => {
      const response = await latchkey.complete(question, { authorization: `Bearer ${key}` })
      await response.arrayBuffer()
      return response.status
    }
    expect([await ask(inside), await ask(inside), await ask(outside)]).toEqual([200, 402, 200])
  })

  test('need limits that grow with their intervals', async () => {
    await set('monthly', 30)
    const failure = await failureOf(set('weekly', 30))
    expect(failure).toBeInstanceOf(BadRequestResponseError)
    expect((failure as Error).message).toContain('must be less than the monthly one, 30 USD')
    expect(await failureOf(set('daily', 31))).toBeInstanceOf(BadRequestResponseError)
    const { data } = await root.workspaces.listBudgets({ workspaceRef: 'research' })
    expect(data.map(({ resetInterval }) => resetInterval)).toEqual(['daily', 'monthly'])
  })

  test('refuse an unknown workspace and a missing credential', async () => {
    expect(await failureOf(set('daily', 1, 'elsewhere'))).toBeInstanceOf(NotFoundResponseError)
    const missing = clientWith().workspaces.listBudgets({ workspaceRef: 'research' })
    expect(await failureOf(missing)).toBeInstanceOf(UnauthorizedResponseError)
  })
})
