// The deadline of a body that passes to an upstream as it arrives.
import { expect, test } from 'bun:test'
import { forward, type UpstreamContext } from '../../../src/inference/upstream/forward.ts'
import { createReachability } from '../../../src/inference/upstream/reachability.ts'
import { configuredUpstream } from '../../../src/inference/upstream/targets.ts'
import { setDeadline } from '../../../src/scheduling/deadlines.ts'

test.each([
  ['passes where no chunk comes', false],
  ['begins again with each chunk', true],
])('while a body arrives, the time for the first byte %s', async (_, arrives) => {
  const between = Promise.withResolvers<boolean>()
  let onProgress = () => {}
  const context: UpstreamContext = {
    via: '1.1 test',
    credentials: { of: () => undefined, replace: async () => undefined },
    reachability: createReachability(Date.now),
    fetch: (_url, { signal }) => {
      // Deadlines of one length are met in the order in which they were set.
      setDeadline(1, () => between.resolve(signal?.aborted === true))
      if (arrives) onProgress()
      return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    },
  }
  const stream = (act: () => void) => {
    onProgress = act
    return new ReadableStream<Uint8Array>()
  }
  const body = { contentType: 'multipart/form-data', stream }
  const outgoing = { method: 'POST', path: '/images/edits', body, requestId: 'id', firstByteMilliseconds: 1 }
  const request = new Request('http://localhost/v1/images/edits', { method: 'POST' })
  const forwarded = forward(request, outgoing, configuredUpstream('http://localhost:1/v1'), context)
  await expect(forwarded).rejects.toMatchObject({ code: 'gateway_timeout', reason: 'upstream_late' })
  expect(await between.promise).toBe(!arrives)
})
