// A form as its bytes pass (reference: Uploads): what it gives however it is cut, and that nothing passes that another
// parser could read differently.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Fault } from '../../src/fault.ts'
import { createFormScanner, readBoundary } from '../../src/inference/form-scanner.ts'

const boundary = 'xBOUNDARYx'
type Read = { parts: string[]; fields: [string, string][] }

function read(form: string | Uint8Array, cuts: readonly number[] = []): Read {
  const bytes = typeof form === 'string' ? Buffer.from(form, 'latin1') : form
  const got: Read = { parts: [], fields: [] }
  const scanner = createFormScanner(boundary, {
    onPart: (name) => got.parts.push(name),
    onField: (name, value) => got.fields.push([name, value]),
  })
  let start = 0
  for (const end of [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b)) {
    // A copy: the scanner may not rely on bytes that the runtime writes again.
    const chunk = Uint8Array.from(bytes.subarray(start, end))
    scanner.take(chunk)
    chunk.fill(0x2d)
    start = end
  }
  scanner.end()
  return got
}

function refusalOf(form: string): string {
  try {
    read(form)
  } catch (error) {
    if (error instanceof Fault && error.reason === 'form_refused') return error.message
    throw error
  }
  throw new Error('It was accepted')
}

const part = (head: string, content: string) => `--${boundary}\r\n${head}\r\n\r\n${content}\r\n`
const field = (name: string, value: string, more = '') =>
  part(`Content-Disposition: form-data; name="${name}"${more}`, value)
const file = (content: string, disposition = 'name="file"; filename="a.wav"') =>
  part(`Content-Disposition: form-data; ${disposition}\r\nContent-Type: audio/wav`, content)
const end = `--${boundary}--\r\n`
const good = field('model', 'whisper') + file('RIFF\r\n--not the boundary') + field('language', 'de') + end

describe('a form', () => {
  test('gives its fields and the names of its parts, wherever it is cut', () => {
    const expected: Read = {
      parts: ['model', 'file', 'language'],
      fields: [
        ['model', 'whisper'],
        ['language', 'de'],
      ],
    }
    fc.assert(fc.property(fc.array(fc.nat()), (cuts) => expect(read(good, cuts)).toEqual(expected)))
    for (let cut = 0; cut <= good.length; cut++) expect(read(good, [cut])).toEqual(expected)
  })

  test('as the runtime writes it is read, whatever the values are', async () => {
    const text = fc
      .string({ unit: 'binary', maxLength: 60 })
      .filter((value) => value.isWellFormed() && !/[\0\r\n]/.test(value))
    await fc.assert(
      fc.asyncProperty(text, fc.uint8Array({ maxLength: 300 }), async (value, content) => {
        const form = new FormData()
        form.set('model', value)
        form.set('file', new Blob([content]), 'a.wav')
        const response = new Response(form)
        const own = readBoundary(response.headers.get('content-type'))
        const fields: [string, string][] = []
        const onField = (name: string, given: string) => fields.push([name, given])
        const scanner = createFormScanner(own ?? '', { onPart: () => {}, onField })
        scanner.take(await response.bytes())
        scanner.end()
        expect(fields).toEqual([['model', value]])
      }),
      { numRuns: 10 },
    )
  })

  const accepted: [name: string, form: string, fields: [string, string][]][] = [
    [
      'without a line end at its end',
      good.slice(0, -2),
      [
        ['model', 'whisper'],
        ['language', 'de'],
      ],
    ],
    ['with an unquoted name', part('Content-Disposition: form-data; name=model', 'm') + end, [['model', 'm']]],
    ['with a header in lower case', part('content-disposition:form-data;name="model"', 'm') + end, [['model', 'm']]],
    ['with the right length', field('model', 'four', '\r\nContent-Length: 4') + end, [['model', 'four']]],
    ['with a typed text', field('model', 'm', '\r\nContent-Type: text/plain; charset=utf-8') + end, [['model', 'm']]],
    ['with an encoded file name', file('x', `name=file; filename=a; filename*=utf-8''%C3%A4.wav`) + end, []],
    ['with a list', field('timestamp_granularities[]', 'word') + end, [['timestamp_granularities[]', 'word']]],
    ['with an empty field', field('prompt', '') + end, [['prompt', '']]],
  ]
  for (const [name, form, fields] of accepted)
    test(`${name} is accepted`, () => expect(read(form).fields).toEqual(fields))
})

describe('a form that parsers could read differently is refused:', () => {
  const model = field('model', 'other')
  const rows: [name: string, form: string, says?: RegExp][] = [
    ['nothing', '', /ends before/],
    ['no end', field('model', 'm'), /ends before/],
    ['text before the first boundary', `ignored\r\n${good}`, /begin with its boundary/],
    ['a line end before it', `\r\n${good}`, /begin with its boundary/],
    ['another form after the end', good + model, /nothing may follow/],
    ['text after the end', `${good}x`, /nothing may follow/],
    ['a boundary after a line feed alone', file(`x\n--${boundary}\r\n${model.slice(14)}`) + end],
    ['a boundary within a line of the file', file(`x--${boundary}\r\nContent-Disposition: form-data`) + end],
    [
      'a boundary within a header',
      file('x').replace('audio/wav', `audio/wav--${boundary}`) + end,
      /contain the boundary/,
    ],
    ['a boundary within a file name', file('x', `name="file"; filename="a--${boundary}"`) + end],
    ['a longer boundary in the file', file(`x\r\n--${boundary}2\r\n`) + end, /followed by a line end/],
    ['a boundary with spaces after it', `${file('x')}--${boundary} \r\nContent-Disposition: form-data; name="model"`],
    ['a boundary with a line feed after it', `${file('x')}--${boundary}\nContent-Disposition: form-data; name="model"`],
    ['lines that end in a line feed', good.replaceAll('\r\n', '\n')],
    ['a part without headers', `--${boundary}\r\n\r\nx\r\n${end}`],
    ['a part without a name', part('Content-Disposition: form-data', 'x') + end],
    ['an attachment', part('Content-Disposition: attachment; name="model"', 'x') + end],
    ['two names', field('a"; name="model', 'x') + end],
    ['two names in another case', field('a"; NAME="model', 'x') + end],
    ['an encoded name', part(`Content-Disposition: form-data; name*=utf-8''model`, 'x') + end],
    ['a name with a percent sign', field('mod%65l', 'x') + end],
    ['a name with a space', field('model ', 'x') + end],
    ['a name with an escape', field('mo\\del', 'x') + end],
    ['an escaped quote in the file name', file('x', 'name="file"; filename="a\\"; name=\\"model"') + end],
    ['an unknown parameter', field('model', 'x', '; size=1') + end],
    ['two dispositions', field('a', 'x', '\r\nContent-Disposition: form-data; name="model"') + end, /repeated header/],
    ['a folded header', field('a', 'x', '\r\n name="model"') + end, /malformed/],
    ['a header with a line feed', field('a', 'x', '\nX: y') + end],
    ['a header with a carriage return', field('a', 'x', '\rX: y') + end],
    ['an unknown header', field('model', 'x', '\r\nX-Model: y') + end, /unsupported header/],
    ['base64', field('model', 'b3RoZXI=', '\r\nContent-Transfer-Encoding: base64') + end, /unsupported header/],
    ['a wrong length', field('model', 'four', '\r\nContent-Length: 3') + end, /not its length/],
    ['text in another charset', field('model', 'x', '\r\nContent-Type: text/plain; charset=utf-16') + end],
    ['a form within the form', file('x').replace('audio/wav', 'multipart/mixed; boundary=y') + end],
    ['a field that changes the charset', field('_charset_', 'utf-16') + end],
    ['a field that is not UTF-8', field('model', '\xff') + end, /UTF-8/],
    ['a NUL in a field', field('model', 'a\0b') + end, /text/],
    ['endless headers', `--${boundary}\r\n${'x'.repeat(5_000)}`, /shorter than/],
    ['too many parts', field('a', 'x').repeat(129) + end, /at most 128 parts/],
    ['too much text', field('prompt', 'x'.repeat(300_000)) + end, /at most 262144 bytes/],
  ]
  for (const [name, form, says = /^The form is not accepted: /] of rows)
    test(name, () => expect(refusalOf(form)).toMatch(says))

  test('any bytes are read or refused, and nothing else is thrown', () => {
    const piece = fc.constantFrom(
      `--${boundary}`,
      '\r\n',
      '--',
      '\r',
      '\n',
      'Content-Disposition: form-data; name="a"',
      'x',
      '\r\n\r\n',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat()), (pieces, cuts) => {
        const outcome = (at: readonly number[]) => {
          try {
            return JSON.stringify(read(pieces.join(''), at))
          } catch (error) {
            if (error instanceof Fault) return 'refused'
            throw error
          }
        }
        expect(outcome(cuts)).toBe(outcome([]))
      }),
      { numRuns: 500 },
    )
  })
})

test('the boundary is taken from a Content-Type that has nothing else', () => {
  const rows: [contentType: string | null, boundary: string | undefined][] = [
    ['multipart/form-data; boundary=abc', 'abc'],
    ['multipart/form-data;boundary="a b"', undefined],
    ['Multipart/Form-Data; Boundary="a:b"', 'a:b'],
    ['multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW', '----WebKitFormBoundary7MA4YWxkTrZu0gW'],
    ['multipart/form-data', undefined],
    ['multipart/form-data; boundary=', undefined],
    ['multipart/form-data; boundary=a; boundary=b', undefined],
    ['multipart/form-data; boundary=a; charset=utf-7', undefined],
    [`multipart/form-data; boundary=${'a'.repeat(71)}`, undefined],
    ['multipart/mixed; boundary=a', undefined],
    ['application/json', undefined],
    [null, undefined],
  ]
  for (const [contentType, expected] of rows)
    expect([contentType, readBoundary(contentType)]).toEqual([contentType, expected])
})
