// The form of an upload: its fields are read as it arrives, and it is held only as long as needed. A small form is held
// whole, so that it can be sent again; of a large one the rest passes to the upstream as it arrives.
import { Fault } from '../fault.ts'
import { requestBodyMillisecondsMax } from '../limits.ts'
import type { Fields } from '../presets/schema/fields.ts'
import { releaseSent } from '../runtime/release-sent.ts'
import { createFormScanner, type FormScanner, readBoundary } from './form-scanner.ts'
import { whatNameSays } from './member-names.ts'

/** From here on, a form whose model is known passes on. */
const heldBytesMax = 4 * 1024 * 1024
/** Far more than any inference server accepts. */
const uploadBytesMax = 4 * 1024 * 1024 * 1024
const contentTypeCharactersShown = 128

export type SentForm = {
  contentType: string
  /** The fields that have arrived, without files. The values of a repeated one are a list. */
  fields: Fields
  /** The whole form, unless it is large. */
  bytes: Uint8Array<ArrayBuffer> | undefined
  /** Passes a large form on, once. `onProgress` is called for each chunk. */
  stream: (onProgress: () => void) => ReadableStream<Uint8Array>
  /** Why the rest of the form was refused. */
  failure: () => Fault | undefined
}

type Reader = ReadableStreamDefaultReader<Uint8Array>
type FormUpload = {
  readonly reader: Reader
  readonly scanner: FormScanner
  readonly fields: Fields
  held: Uint8Array[]
  bytes: number
  /** The fields have been judged: those that follow may say nothing that matters. */
  isJudged: boolean
  failure: Fault | undefined
}

/**
 * Reads a form until it is whole, or large with its model known.
 * @throws Fault `unsupported_media_type`; `too_large` when `bytesMax` bytes have arrived without a model; `timeout` when a
 * part of it does not arrive in time; `invalid`
 */
export async function readForm(request: Request, bytesMax: number): Promise<SentForm> {
  const contentType = request.headers.get('content-type')
  const boundary = readBoundary(contentType)
  if (boundary === undefined) throw notAForm(contentType)
  const encoding = request.headers.get('content-encoding') ?? 'identity'
  if (encoding.toLowerCase() !== 'identity')
    throw new Fault('invalid', 'The body has a Content-Encoding: send it uncompressed, without this header', {
      reason: 'content_encoding',
    })
  if (Number(request.headers.get('content-length') ?? 0) > uploadBytesMax) throw tooLarge()
  const reading = openUpload(boundary, request.body ?? new Blob([]).stream())
  const isWhole = await readWhileHeld(reading, bytesMax)
  reading.isJudged = true
  const bytes = isWhole ? Buffer.concat(reading.held) : undefined
  if (isWhole) reading.held = []
  return {
    contentType: `multipart/form-data; boundary=${/^[\w-]+$/.test(boundary) ? boundary : JSON.stringify(boundary)}`,
    fields: reading.fields,
    bytes,
    stream: (onProgress) => streamOf(reading, onProgress),
    failure: () => reading.failure,
  }
}

function openUpload(boundary: string, body: ReadableStream<Uint8Array>): FormUpload {
  const scanner = createFormScanner(boundary, {
    onPart: (name, isFile) => {
      if (whatNameSays(name) === 'other') return
      if (isFile)
        throw new Fault('invalid', `The field ${JSON.stringify(name)} must be text, and not a file`, {
          reason: 'form_refused',
        })
      if (reading.isJudged) throw late(name)
    },
    onField: (name, value) => {
      if (reading.isJudged && holdsJson(value)) throw late(name)
      if (!reading.isJudged) addField(reading.fields, name, value)
    },
  })
  const fields: Fields = Object.create(null) as Fields
  const reading: FormUpload = {
    ...{ reader: body.getReader(), scanner, fields },
    ...{ held: [], bytes: 0, isJudged: false, failure: undefined },
  }
  return reading
}

/** Whether an upstream could read a text as JSON, with names of models in it. */
export function holdsJson(value: string): boolean {
  return /^\s*[[{]/.test(value)
}

function addField(fields: Fields, name: string, value: string): void {
  const known = fields[name]
  if (known !== undefined && name === 'model')
    throw new Fault('invalid', 'The form names model twice: send it once', { reason: 'form_refused' })
  fields[name] = known === undefined ? value : [known, value].flat()
}

/** Whether the form has ended. */
async function readWhileHeld(reading: FormUpload, bytesMax: number): Promise<boolean> {
  for (;;) {
    const chunk = await readChunk(reading)
    if (chunk === undefined) return true
    reading.held.push(chunk)
    if (reading.bytes >= Math.min(heldBytesMax, bytesMax) && reading.fields.model !== undefined) return false
    if (reading.bytes >= bytesMax) {
      await reading.reader.cancel().catch(() => {})
      const rule = `The first ${bytesMax} bytes of the form have no field model`
      throw new Fault('too_large', `${rule}: send model before the file`, { reason: 'form_without_model' })
    }
  }
}

/** The next chunk, which the scanner has accepted; undefined at the end. */
async function readChunk(reading: FormUpload): Promise<Uint8Array | undefined> {
  const { reader, scanner } = reading
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    reader.cancel().catch(() => {})
  }, requestBodyMillisecondsMax)
  try {
    const { done, value } = await reader.read()
    if (isLate) throw new Fault('timeout', 'The body did not arrive in time: send it again', { reason: 'body_late' })
    if (done) {
      scanner.end()
      return undefined
    }
    reading.bytes += value.byteLength
    if (reading.bytes > uploadBytesMax) throw tooLarge()
    scanner.take(value)
    return value
  } catch (error) {
    const fault =
      error instanceof Fault
        ? error
        : new Fault('invalid', 'The body ended early: send it again', { reason: 'body_broken', cause: error })
    reading.failure = fault
    await reader.cancel().catch(() => {})
    throw fault
  } finally {
    clearTimeout(timer)
  }
}

function streamOf(reading: FormUpload, onProgress: () => void): ReadableStream<Uint8Array> {
  let last: Uint8Array | undefined
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    // The last chunk has been sent when the next one is asked for.
    if (last !== undefined) releaseSent(last)
    last = undefined
    const chunk = reading.held.shift() ?? (await readChunk(reading))
    last = chunk
    onProgress()
    if (chunk === undefined) controller.close()
    else controller.enqueue(chunk)
  }
  return new ReadableStream({ pull, cancel: () => reading.reader.cancel().catch(() => {}) }, { highWaterMark: 0 })
}

function notAForm(contentType: string | null): Fault {
  const sent =
    contentType === null ? 'A missing Content-Type' : JSON.stringify(contentType.slice(0, contentTypeCharactersShown))
  return new Fault(
    'unsupported_media_type',
    `${sent} is not a supported Content-Type: send the file as multipart/form-data with a boundary of letters and digits`,
    { reason: 'content_type' },
  )
}

function tooLarge(): Fault {
  return new Fault('too_large', `The body must have at most ${uploadBytesMax} bytes: send a smaller file`, {
    reason: 'body_too_large',
  })
}

function late(name: string): Fault {
  return new Fault('invalid', `Send the field ${JSON.stringify(name)} once, and before the file: the file is large`, {
    reason: 'form_field_late',
  })
}
