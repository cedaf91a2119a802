// Listening: an address has one owner, and a stop lets running requests end.
import { expect, test } from 'bun:test'
import { Fault } from '../src/fault.ts'
import { listen } from '../src/runtime.ts'

const loopback = { hostname: '127.0.0.1', port: 0 }

test('an address that is taken is refused, not shared', async () => {
  const first = await listen(loopback, async () => new Response('first'))
  try {
    const second = await listen({ ...loopback, port: first.port }, async () => new Response('second')).catch(
      (error: unknown) => error,
    )
    expect(second).toBeInstanceOf(Fault)
    expect(second).toMatchObject({ code: 'configuration', message: expect.stringContaining(`127.0.0.1:${first.port}`) })
  } finally {
    await first.drain()
  }
})

test('draining lets a running request end and takes no new one', async () => {
  const { promise: isInside, resolve: enter } = Promise.withResolvers<void>()
  const { promise: mayLeave, resolve: leave } = Promise.withResolvers<void>()
  const { port, drain } = await listen(loopback, async () => {
    enter()
    await mayLeave
    return new Response('done')
  })
  const running = fetch(`http://127.0.0.1:${port}/`)
  await isInside
  const drained = drain()
  leave()
  expect(await (await running).text()).toBe('done')
  await drained
  expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
})
