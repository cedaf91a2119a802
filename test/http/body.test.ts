// Reading a body: bounded in bytes and in time for every sender, and the media type read exactly.
import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { hasMediaType, readBody } from '../../src/http/body.ts'
import { requestBodyMillisecondsMax } from '../../src/limits.ts'
import { setDeadline } from '../../src/scheduling/deadlines.ts'

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
  let elapsed = 0
  let clock: { mockRestore: () => void }
  beforeEach(() => {
    elapsed = 0
    clock = spyOn(performance, 'now').mockImplementation(() => elapsed)
  })
  afterEach(() => clock.mockRestore())

  /** Resolves at this time, with whatever else is due by then. */
  async function passUntil(milliseconds: number, due: Promise<void>): Promise<void> {
    elapsed = milliseconds
    await due
  }

  test.each([
    ['however little it goes on sending', {}],
    ['with a Content-Length', { 'content-length': '9' }],
  ])('is given up when the time is over, and not before: %s', async (_, headers) => {
    const nearly = new Promise<void>((resolve) => setDeadline(requestBodyMillisecondsMax - 1, resolve))
    const sender = senderOf()
    let isGivenUp = false
    const reading = readBody(requestOf(sender.stream, headers), limit).finally(() => {
      isGivenUp = true
    })
    sender.send(1)
    await passUntil(requestBodyMillisecondsMax - 1, nearly)
    expect(isGivenUp).toBe(false)
    elapsed = requestBodyMillisecondsMax
    await expect(reading).rejects.toMatchObject({ code: 'timeout', reason: 'body_late' })
  })

  test('that is given up is canceled', async () => {
    const sender = senderOf()
    const reading = readBody(requestOf(sender.stream), limit)
    elapsed = requestBodyMillisecondsMax
    await expect(reading).rejects.toMatchObject({ code: 'timeout' })
    await sender.cancelled
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
