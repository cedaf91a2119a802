// What a node does when it learns late of its own commit, cannot read what it has changed, or is overtaken each time.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { staleError } from '../../db/remote/refresh.ts'
import type { Row } from '../support/latchkey.ts'
import { type Nodes, startNodes, urlOf } from '../support/nodes.ts'
import { rejectionOf } from '../support/rejection.ts'

let cluster: Nodes
beforeAll(async () => {
  cluster = await startNodes(2)
})
afterAll(() => cluster.stop())

test('a preset that was archived on another node stays archived when the response to a post arrives late', async () => {
  const [late, other] = cluster.nodes
  const shared = late?.server.context.database.shared
  if (late === undefined || other === undefined || shared === undefined) throw new Error('There are two nodes')
  const key = await other.admin<Row & { key: string }>('keys.create', { name: 'reader' })
  const statusAtLate = async () =>
    (await fetch(`${urlOf(late)}/presets/words`, { headers: { authorization: `Bearer ${key.key}` } })).status
  const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] })
  const save = () => late.admin('presets.save', { preset: 'words', dialect: 'chat', body })
  await save()
  const [committed, arrives] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { commitChange } = shared
  shared.commitChange = async (...change) => {
    const revision = await commitChange(...change)
    committed.resolve()
    await arrives.promise
    return revision
  }
  const saved = save()
  await committed.promise
  await other.admin('presets.archive', { preset: 'words' })
  expect(await statusAtLate()).toBe(404)
  arrives.resolve()
  await saved
  expect(await statusAtLate()).toBe(404)
  shared.commitChange = commitChange
})

test('a node that loses the database after its commit serves on, and obeys the change when the database is back', async () => {
  const [node] = cluster.nodes
  const shared = node?.server.context.database.shared
  if (node === undefined || shared === undefined) throw new Error('There are two nodes')
  const { trouble } = cluster.database
  const key = await node.admin<Row & { key: string }>('keys.create', { name: 'disabled' })
  const { commitChange } = shared
  shared.commitChange = async (...change) => {
    const revision = await commitChange(...change)
    trouble.isPartitioned = true
    return revision
  }
  const error = await rejectionOf(node.admin('keys.update', { key: 'disabled', disabled: true }))
  expect(error.message).toContain('can have taken effect')
  trouble.isPartitioned = false
  shared.commitChange = commitChange
  const response = await fetch(`${urlOf(node)}/presets`, { headers: { authorization: `Bearer ${key.key}` } })
  expect(response.status).toBe(401)
})

test('a post that other nodes overtake each time is a conflict', async () => {
  const [node] = cluster.nodes
  const shared = node?.server.context.database.shared
  if (node === undefined || shared === undefined) throw new Error('There are two nodes')
  const manager = await node.admin<Row & { key: string }>('keys.create', { name: 'manager', kind: 'management' })
  const { commitChange } = shared
  shared.commitChange = () => Promise.reject(staleError())
  const headers = { authorization: `Bearer ${manager.key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] })
  const posted = await fetch(`${urlOf(node)}/presets/overtaken/chat/completions`, { method: 'POST', headers, body })
  shared.commitChange = commitChange
  expect(posted.status).toBe(409)
})
