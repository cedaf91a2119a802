// Reading a body: bounded in bytes and in time for every sender, and the media type read exactly.
import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { hasMediaType, readBody } from '../../src/http/body.ts'
import { requestBodyMillisecondsMax } from '../../src/limits.ts'

const limit = 100
const url = 'http://127.0.0.1/'

function requestOf(body: BodyInit | null, headers: Record<string, string> = {}): Request {
  return new Request(url, { method: 'POST', body, headers })
}

/** A sender in the hand of the test. */
function senderOf() {
  const cancelled = Promise.withResolvers<void>()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given
    },
    cancel: () => cancelled.resolve(),
  })
  const send = (bytes: number) => controller?.enqueue(new Uint8Array(bytes))
  return {
    stream,
    send,
    end: () => controller?.close(),
    breakOff: () => controller?.error(new Error('reset')),
    cancelled: cancelled.promise,
  }
}

describe('a body', () => {
  test('comes back as it was sent, however it was cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 }), { maxLength: 10 }), async (chunks) => {
        const stream = new ReadableStream<Uint8Array>({
          start: (controller) => {
            for (const chunk of chunks) controller.enqueue(chunk)
            controller.close()
          },
        })
        expect(Buffer.from(await readBody(requestOf(stream), limit))).toEqual(Buffer.concat(chunks))
      }),
    )
  })

  test('that is absent is empty', async () => {
    expect(await readBody(requestOf(null), limit)).toHaveLength(0)
    expect(await readBody(new Request(url), limit)).toHaveLength(0)
  })

  test('one byte under the limit is read, and one at the limit is refused', async () => {
    expect(await readBody(requestOf('x'.repeat(limit - 1)), limit)).toHaveLength(limit - 1)
    await expect(readBody(requestOf('x'.repeat(limit)), limit)).rejects.toMatchObject({ code: 'too_large' })
  })

  test('that never ends is refused at the limit, and its sender gets a response', async () => {
    const sender = senderOf()
    const reading = readBody(requestOf(sender.stream), limit)
    sender.send(limit - 1)
    sender.send(1)
    await expect(reading).rejects.toMatchObject({ code: 'too_large', reason: 'body_too_large' })
    await sender.cancelled
  })

  test('whose Content-Length is too large is refused unread', async () => {
    const sender = senderOf()
    const request = requestOf(sender.stream, { 'content-length': String(limit) })
    await expect(readBody(request, limit)).rejects.toMatchObject({ code: 'too_large' })
    expect(request.bodyUsed).toBe(false)
  })

  test('whose Content-Length is too small is still refused', async () => {
    const request = requestOf('x'.repeat(limit), { 'content-length': '1' })
    await expect(readBody(request, limit)).rejects.toMatchObject({ code: 'too_large' })
  })

  test('that breaks off is a bad request, not an error of ours', async () => {
    const sender = senderOf()
    const reading = readBody(requestOf(sender.stream), limit)
    sender.send(1)
    sender.breakOff()
    await expect(reading).rejects.toMatchObject({ code: 'invalid', reason: 'body_broken' })
  })

  for (const encoding of ['gzip', 'br', 'identity, gzip', 'GZIP']) {
    test(`with Content-Encoding ${encoding} is refused`, async () => {
      const request = requestOf('x', { 'content-encoding': encoding })
      await expect(readBody(request, limit)).rejects.toMatchObject({ code: 'invalid', reason: 'content_encoding' })
    })
  }

  test('with Content-Encoding identity is read', async () => {
    expect(await readBody(requestOf('x', { 'content-encoding': 'Identity' }), limit)).toHaveLength(1)
  })
})

describe('a slow sender', () => {
  const spies: { mockRestore: () => void }[] = []
  let ring: (() => void) | undefined
  let delay: number | undefined
  let elapsed = 0
  beforeEach(() => {
    elapsed = 0
    const setTimer = ((callback: () => void, milliseconds?: number) => {
      ring = callback
      delay = milliseconds
      return 1
    }) as unknown as typeof setTimeout
    spies.push(spyOn(globalThis, 'setTimeout').mockImplementation(setTimer))
    spies.push(spyOn(performance, 'now').mockImplementation(() => elapsed))
  })
  afterEach(() => {
    for (const spy of spies.splice(0)) spy.mockRestore()
  })

  test('is given up when the time is over, however little it goes on sending', async () => {
    const sender = senderOf()
    const reading = readBody(requestOf(sender.stream), limit)
    expect(delay).toBe(requestBodyMillisecondsMax)
    sender.send(1)
    elapsed = requestBodyMillisecondsMax
    ring?.()
    await expect(reading).rejects.toMatchObject({ code: 'timeout', reason: 'body_late' })
    await sender.cancelled
  })

  test('with a Content-Length is refused as well', async () => {
    const sender = senderOf()
    const reading = readBody(requestOf(sender.stream, { 'content-length': '9' }), limit)
    expect(delay).toBe(requestBodyMillisecondsMax)
    sender.send(1)
    ring?.()
    await expect(reading).rejects.toMatchObject({ code: 'timeout', reason: 'body_late' })
  })
})

describe('the media type', () => {
  const form = 'application/x-www-form-urlencoded'
  const rows: [value: string | undefined, expected: boolean][] = [
    [form, true],
    [form.toUpperCase(), true],
    [`${form};charset=utf-8`, true],
    [`${form} ; charset="UTF-8"`, true],
    [`${form}; charset=latin1`, false],
    [`${form}; boundary=x`, false],
    [`${form}, text/plain`, false],
    [`${form}x`, false],
    ['text/plain', false],
    ['', false],
    [undefined, false],
  ]
  for (const [value, expected] of rows) {
    test(`${value ?? 'absent'} is ${expected ? '' : 'not '}a form`, () => {
      const request = new Request(url, {
        method: 'POST',
        headers: value === undefined ? {} : { 'content-type': value },
      })
      expect(hasMediaType(request, form)).toBe(expected)
    })
  }
})
