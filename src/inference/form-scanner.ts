// Reads a multipart form as its bytes pass (RFC 7578). It is strict: what another parser could read in a different way is
// refused, since the upstream gets the same bytes. It keeps the text of fields, and nothing of files.
import { Fault } from '../fault.ts'
import { decodeUtf8 } from '../values/bytes.ts'

const partsMax = 128
const headerBytesMax = 4_096
/** The text of all fields. The prompt of an image has up to 32,000 characters. */
const textBytesMax = 256 * 1024

export type FormEvents = {
  /** A part begins. */
  onPart: (name: string, isFile: boolean) => void
  /** A field, which is not a file, is complete. */
  onField: (name: string, value: string) => void
}
export type FormScanner = {
  /** @throws Fault `invalid` */
  take: (chunk: Uint8Array) => void
  /** @throws Fault `invalid` when the form is not complete */
  end: () => void
}

type Part = { name: string; isFile: boolean; contentLength: number | undefined }
type Scan = {
  readonly events: FormEvents
  /** Two hyphens and the boundary. */
  readonly dashes: Buffer
  state: 'start' | 'headers' | 'content' | 'epilogue'
  /** Bytes that are not read yet. */
  rest: Buffer
  part: Part
  /** The bytes of the content so far, which are no longer in `rest`, and its text if it is not a file. */
  contentBytes: number
  text: Buffer[]
  parts: number
  textBytes: number
}

const [carriageReturn, lineFeed, hyphen] = [0x0d, 0x0a, 0x2d]
const none: Part = { name: '', isFile: true, contentLength: undefined }
const [nothing, crlf, emptyLine] = [Buffer.alloc(0), Buffer.from('\r\n'), Buffer.from('\r\n\r\n')]

/** `boundary` is as `readBoundary` returns it. */
export function createFormScanner(boundary: string, events: FormEvents): FormScanner {
  const scan: Scan = {
    events,
    dashes: Buffer.from(`--${boundary}`),
    state: 'start',
    rest: nothing,
    part: none,
    contentBytes: 0,
    text: [],
    parts: 0,
    textBytes: 0,
  }
  return {
    take: (chunk) => {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      if (isWithinFile(scan, bytes)) return
      scan.rest = scan.rest.length === 0 ? bytes : Buffer.concat([scan.rest, bytes])
      while (steps[scan.state](scan));
      // A copy, so that the chunk can be freed.
      if (scan.rest.length > 0) scan.rest = Buffer.from(scan.rest)
    },
    end: () => {
      if (scan.state !== 'epilogue' || !(scan.rest.length === 0 || scan.rest.equals(crlf)))
        throw refused('it ends before its last boundary')
    },
  }
}

/** Whether a chunk is nothing but content of a file, which needs no copy. */
function isWithinFile(scan: Scan, chunk: Buffer): boolean {
  const { state, part, rest, dashes } = scan
  const kept = dashes.length + 1
  if (state !== 'content' || !part.isFile || chunk.length < 2 * kept || chunk.includes(dashes)) return false
  const seam = Buffer.concat([rest, chunk.subarray(0, kept)])
  if (seam.includes(dashes)) return false
  scan.contentBytes += rest.length + chunk.length - kept
  scan.rest = Buffer.from(chunk.subarray(chunk.length - kept))
  return true
}

/** Each reads on from `rest` and returns whether it got anywhere. */
const steps: Record<Scan['state'], (scan: Scan) => boolean> = {
  start: (scan) => {
    const { rest, dashes } = scan
    if (rest.length < dashes.length + 2) return false
    if (!rest.subarray(0, dashes.length).equals(dashes)) throw refused('it must begin with its boundary')
    return passBoundary(scan, 0)
  },
  headers: (scan) => {
    const end = scan.rest.indexOf(emptyLine)
    if (end > headerBytesMax || (end < 0 && scan.rest.length > headerBytesMax))
      throw refused(`the headers of a part must be shorter than ${headerBytesMax} bytes`)
    if (end < 0) return false
    // A parser that looks for the boundary anywhere would see another part here.
    if (scan.rest.subarray(0, end).includes(scan.dashes)) throw refused('no part may contain the boundary')
    scan.part = readPart(scan.rest.toString('latin1', 0, end))
    scan.parts += 1
    if (scan.parts > partsMax) throw refused(`it may have at most ${partsMax} parts`)
    scan.events.onPart(scan.part.name, scan.part.isFile)
    scan.rest = scan.rest.subarray(end + emptyLine.length)
    Object.assign(scan, { state: 'content', contentBytes: 0, text: [] })
    return true
  },
  content: (scan) => {
    const { rest, dashes } = scan
    const found = rest.indexOf(dashes)
    // An end that has not arrived whole may begin in the last bytes.
    const kept = Math.min(rest.length, dashes.length + 1)
    if (found < 0) takeContent(scan, rest.length - kept)
    if (found < 0 || rest.length < found + dashes.length + 2) return false
    if (found < 2 || rest[found - 2] !== carriageReturn || rest[found - 1] !== lineFeed)
      throw refused('a line must end before each boundary, and no part may contain the boundary')
    takeContent(scan, found - 2)
    endPart(scan)
    return passBoundary(scan, 2)
  },
  epilogue: ({ rest }) => {
    if (rest.length > 2 || (rest.length > 0 && !crlf.subarray(0, rest.length).equals(rest)))
      throw refused('nothing may follow its last boundary')
    return false
  },
}

/** Passes a boundary at this position, with the two bytes after it. */
function passBoundary(scan: Scan, at: number): boolean {
  const after = at + scan.dashes.length
  const [first, second] = [scan.rest[after], scan.rest[after + 1]]
  const isLast = first === hyphen && second === hyphen
  if (!isLast && !(first === carriageReturn && second === lineFeed))
    throw refused('a boundary must be followed by a line end, and the last one by two hyphens')
  scan.state = isLast ? 'epilogue' : 'headers'
  scan.rest = scan.rest.subarray(after + 2)
  return true
}

function takeContent(scan: Scan, length: number): void {
  scan.contentBytes += length
  if (!scan.part.isFile) {
    scan.textBytes += length
    if (scan.textBytes > textBytesMax) throw refused(`all fields without the files have at most ${textBytesMax} bytes`)
    // A copy: the runtime may write to the chunk again.
    scan.text.push(Buffer.from(scan.rest.subarray(0, length)))
  }
  scan.rest = scan.rest.subarray(length)
}

function endPart({ part: { name, isFile, contentLength }, contentBytes, text, events }: Scan): void {
  if (contentLength !== undefined && contentLength !== contentBytes)
    throw refused('the Content-Length of a part is not its length')
  if (isFile) return
  const value = decodeUtf8(Buffer.concat(text))
  if (value === undefined || value.includes('\0')) throw refused('its fields must be text in UTF-8')
  events.onField(name, value)
}

const headerLine = /^([A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff]*)$/
const textTypes = /^(?:text\/plain|application\/json)(?:; ?charset="?utf-8"?)?$/i

/** @throws Fault `invalid` */
function readPart(head: string): Part {
  const headers = new Map<string, string>()
  for (const line of head.split('\r\n')) {
    const [, name = '', value = ''] = headerLine.exec(line) ?? []
    if (name === '' || headers.has(name.toLowerCase())) throw refused('a part has a malformed or repeated header')
    headers.set(name.toLowerCase(), value.trimEnd())
  }
  const part = readDisposition(headers.get('content-disposition') ?? '')
  for (const [name, value] of headers) {
    const isKnown = partHeaders[name]?.(value, part.isFile) ?? false
    if (!isKnown)
      throw refused(`a part has the unsupported header ${JSON.stringify(name)}, or an unsupported value of it`)
  }
  const length = headers.get('content-length')
  return { ...part, contentLength: length === undefined ? undefined : Number(length) }
}

/** The headers that a part may have, and their values. */
const partHeaders: Record<string, (value: string, isFile: boolean) => boolean> = {
  'content-disposition': () => true,
  'content-type': (value, isFile) => (isFile ? !/^\s*multipart\//i.test(value) : textTypes.test(value)),
  'content-length': (value) => /^\d{1,15}$/.test(value),
  'content-transfer-encoding': (value) => /^(?:binary|8bit|7bit)$/i.test(value),
}

/** A quoted value has no backslash: some parsers read the next quote as its end, others do not. */
const parameter = /;[ \t]*([a-z]+\*?)=(?:"([^"\\]*)"|([\w.!#$&+^`|~%'-]+))/giy
const fieldName = /^[\w.[\]-]{1,128}$/

/** @throws Fault `invalid` */
function readDisposition(value: string): Pick<Part, 'name' | 'isFile'> {
  const parameters = new Map<string, string>()
  const kind = /^form-data(?=;)/i.exec(value)?.[0] ?? ''
  parameter.lastIndex = kind.length
  let end = kind.length
  for (let found = parameter.exec(value); found !== null; found = parameter.exec(value)) {
    const name = (found[1] ?? '').toLowerCase()
    if (parameters.has(name) || !['name', 'filename', 'filename*'].includes(name)) break
    parameters.set(name, found[2] ?? found[3] ?? '')
    end = parameter.lastIndex
  }
  const name = parameters.get('name') ?? ''
  if (kind === '' || end !== value.length || !fieldName.test(name) || name.toLowerCase() === '_charset_')
    throw refused(
      'each part needs a Content-Disposition of form-data with a name of letters, digits and ._-[], and no backslash in the file name',
    )
  return { name, isFile: parameters.has('filename') || parameters.has('filename*') }
}

/** RFC 2046 §5.1.1, without the space. */
const boundaryText = /^multipart\/form-data; ?boundary=(?:"([\w'()+,./:=?-]{1,70})"|([\w'+.-]{1,70}))$/i

/** The boundary in a Content-Type; undefined when it is not that of a form. */
export function readBoundary(contentType: string | null): string | undefined {
  const [, quoted, plain] = boundaryText.exec(contentType ?? '') ?? []
  return quoted ?? plain
}

function refused(why: string): Fault {
  return new Fault('invalid', `The form is not accepted: ${why}`, { reason: 'form_refused' })
}
