// Who runs a checkpoint: the second connection, once it is open. Where its thread cannot be started again, nobody does, and commits go on.
import { expect, test } from 'bun:test'
import { createCheckpoints } from '../../../db/file/checkpoints.ts'

type Parts = Parameters<typeof createCheckpoints>

function start(state: { isOpen: boolean; isUsable: boolean }) {
  const ran: string[] = []
  const client = {
    execute: async (statement: unknown) => void ran.push(String(statement)),
    withoutCommits: async (act: () => Promise<unknown>) => {
      ran.push('commits wait')
      return act()
    },
  } as unknown as Parts[0]
  const reader = {
    isOpen: () => state.isOpen,
    isUsable: () => state.isUsable,
    checkpoint: async (isAlone: boolean) => void ran.push(isAlone ? 'alone' : 'beside commits'),
  } as unknown as Parts[1]
  return { ran, checkpoints: createCheckpoints(client, reader) }
}

test.each([
  ['before the second connection is open, while nothing is committed', { isOpen: false, isUsable: true }, false, 1],
  ['with a second connection that cannot be opened', { isOpen: false, isUsable: false }, true, 0],
  ['with one whose thread is lost', { isOpen: true, isUsable: false }, true, 0],
])('%s, the number of checkpoints is right', async (_, state, isBusy, count) => {
  const { ran, checkpoints } = start(state)
  await checkpoints.run(isBusy)
  expect(ran).toEqual(Array.from({ length: count }, () => 'pragma wal_checkpoint(passive)'))
})

test('the second connection runs it beside commits, and alone where that did not move everything', async () => {
  const { ran, checkpoints } = start({ isOpen: true, isUsable: true })
  await checkpoints.run(true)
  expect(ran).toEqual(['beside commits', 'commits wait', 'alone'])
})
