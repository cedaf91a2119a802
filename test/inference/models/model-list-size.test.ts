// How large the list of models of an upstream may be: 4 MiB, counted as they arrive.
import { describe, expect, test } from 'bun:test'
import { modelsIn, readListBody } from '../../../src/inference/models/model-list.ts'
import { upstreamListBytesMax } from '../../../src/limits.ts'

/** A list with spaces at its end, in chunks of a size. */
function listOf(
  bytes: number,
  chunkBytes: number,
): { response: Response; seen: { pulled: number; canceled: boolean } } {
  const whole = new Uint8Array(bytes).fill(0x20)
  whole.set(Buffer.from('{"data":[{"id":"m"}]}'))
  const seen = { pulled: 0, canceled: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        const start = seen.pulled++ * chunkBytes
        if (start >= bytes) controller.close()
        else controller.enqueue(whole.subarray(start, start + chunkBytes))
      },
      cancel: () => {
        seen.canceled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { response: new Response(body), seen }
}

test('the bound is 4 MiB', () => expect(upstreamListBytesMax).toBe(4_194_304))

describe.each([4_194_304, 65_536, 1_000_000])('in chunks of %i bytes', (chunkBytes) => {
  test('a list of the largest size is read', async () => {
    const body = await readListBody(listOf(upstreamListBytesMax, chunkBytes).response)
    expect(body.byteLength).toBe(upstreamListBytesMax)
    expect(modelsIn(body)).toEqual([{ id: 'm' }])
  })

  test('one byte more is refused, and the rest is not read', async () => {
    const { response, seen } = listOf(upstreamListBytesMax + 1, chunkBytes)
    await expect(readListBody(response)).rejects.toMatchObject({
      code: 'bad_gateway',
      message:
        'The inference server sent a response of more than 4194304 bytes; its administrator finds the reason in the log',
    })
    expect(seen.canceled).toBe(true)
  })
})
