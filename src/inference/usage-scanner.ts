// Finds the usage of a JSON object as its bytes pass, however long it is: the members that usage.ts reads, where it
// reads them, and nothing of what lies deeper. It keeps a few bytes. For a valid JSON text it finds what JSON.parse does.

type Fields = Record<string, unknown>

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openBrace, closeBrace] = [0x7b, 0x7d]
/** A bracket and a brace differ in this bit. */
const braceBit = 0x20
/** A usage object holds numbers and objects of numbers; anything longer is something else. */
const valueBytesMax = 10_000
/** The longest name below, with each character as an escape. */
const nameBytesMax = 48
const outerNames = new Set(['usage', 'model', 'type', 'response', 'message', 'id', 'duration'])
const innerNames = new Set(['usage', 'model', 'id'])
/** Objects that nest the fields. */
const nestingNames = new Set(['response', 'message'])
/** The first bytes of a string are read one by one; from there, searching for its end is faster. */
const stepBytes = 16
/** Stands for a value that is not examined: it is neither null nor an object. */
const unexamined = 0
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

export type UsageScanner = {
  take: (bytes: Uint8Array) => void
  /** An object with the members of interest. Values that are too long are not objects. */
  result: () => Fields
}

type Scan = {
  readonly outer: Fields
  /** The nested object that is being read. */
  inner: Fields | undefined
  /** Open objects and lists. */
  depth: number
  isInText: boolean
  /** Whether the next byte of a string is escaped. */
  isEscaped: boolean
  /** Whether the next string is the name of a member. */
  isNameNext: boolean
  /** Whether the value of the member begins at the next byte that is not white space. */
  isValueNext: boolean
  /** The member being read, where it is of interest. */
  name: string | undefined
  /** What is being kept: where it began in these bytes, and its bytes of earlier chunks. */
  keptFrom: number
  kept: Uint8Array[]
  keptBytes: number
  isOver: boolean
}

export function createUsageScanner(): UsageScanner {
  const scan: Scan = {
    outer: {},
    inner: undefined,
    depth: 0,
    isInText: false,
    isEscaped: false,
    isNameNext: false,
    isValueNext: false,
    name: undefined,
    keptFrom: -1,
    kept: [],
    keptBytes: 0,
    isOver: false,
  }
  return {
    take: (bytes) => scanBytes(scan, bytes),
    result: () => scan.outer,
  }
}

function scanBytes(scan: Scan, bytes: Uint8Array): void {
  let at = 0
  if (scan.keptFrom >= 0) scan.keptFrom = 0
  while (at < bytes.length && !scan.isOver) {
    if (scan.isInText) at = readText(scan, bytes, at)
    else if (scan.depth > levelOf(scan)) at = skipNested(scan, bytes, at)
    else if (scan.depth === 0) begin(scan, bytes[at++] ?? 0)
    else readMember(scan, bytes, at++)
  }
  if (scan.keptFrom >= 0 && !scan.isOver) keep(scan, bytes, bytes.length)
}

/** How deep the members lie that are being read. */
function levelOf({ inner }: Scan): number {
  return inner === undefined ? 1 : 2
}

/** Skips a byte order mark and white space. */
function begin(scan: Scan, byte: number): void {
  if (byte === openBrace) {
    scan.depth = 1
    scan.isNameNext = true
  } else if (!isSpace(byte) && byte !== 0xef && byte !== 0xbb && byte !== 0xbf) scan.isOver = true
}

/** A byte of an object whose members are read. */
function readMember(scan: Scan, bytes: Uint8Array, at: number): void {
  const byte = bytes[at] ?? 0
  if (isSpace(byte)) return
  if (scan.isValueNext) {
    scan.isValueNext = false
    if (beginValue(scan, byte, at)) return
  }
  if (byte === quote) {
    scan.isInText = true
    if (scan.isNameNext) beginKeeping(scan, at + 1)
  } else if (byte === colon) {
    scan.isValueNext = true
  } else if (byte === comma) {
    endValue(scan, bytes, at)
    scan.isNameNext = true
  } else if ((byte | braceBit) === openBrace) scan.depth += 1
  else if ((byte | braceBit) === closeBrace) endObject(scan, bytes, at)
}

/** Whether the value is an object whose members are read in turn. */
function beginValue(scan: Scan, byte: number, at: number): boolean {
  const { name, outer } = scan
  if (name === undefined) return false
  if (scan.inner === undefined && nestingNames.has(name) && byte === openBrace) {
    scan.inner = {}
    outer[name] = scan.inner
    scan.depth += 1
    scan.isNameNext = true
    scan.name = undefined
    return true
  }
  beginKeeping(scan, at)
  return false
}

function endObject(scan: Scan, bytes: Uint8Array, at: number): void {
  endValue(scan, bytes, at)
  scan.depth -= 1
  scan.inner = undefined
  scan.isNameNext = false
  scan.isOver = scan.depth === 0
}

function endValue(scan: Scan, bytes: Uint8Array, at: number): void {
  if (scan.keptFrom < 0) return
  const text = takeKept(scan, bytes, at, valueBytesMax)
  const fields = scan.inner ?? scan.outer
  if (scan.name !== undefined) fields[scan.name] = text === undefined ? unexamined : parseValue(text)
  scan.name = undefined
}

function endName(scan: Scan, bytes: Uint8Array, at: number): void {
  const text = takeKept(scan, bytes, at, nameBytesMax)
  const name = text?.includes('\\') === true ? parseValue(`"${text}"`) : text
  const names = scan.inner === undefined ? outerNames : innerNames
  scan.name = typeof name === 'string' && names.has(name) ? name : undefined
  scan.isNameNext = false
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return unexamined
  }
}

/** To the end of a string. Returns the position behind it. */
function readText(scan: Scan, bytes: Uint8Array, from: number): number {
  const end = endOfText(scan, bytes, from)
  if (end < 0) return bytes.length
  scan.isInText = false
  if (scan.isNameNext && scan.depth === levelOf(scan)) endName(scan, bytes, end)
  return end + 1
}

/** To the end of objects and lists that are not examined, or of the bytes. */
function skipNested(scan: Scan, bytes: Uint8Array, from: number): number {
  const level = levelOf(scan)
  let { depth } = scan
  let at = from
  while (at < bytes.length && depth > level) {
    const byte = bytes[at++] ?? 0
    if (byte === quote) {
      const end = at < bytes.length ? endOfText(scan, bytes, at) : -1
      scan.isInText = end < 0
      at = end < 0 ? bytes.length : end + 1
    } else if ((byte | braceBit) === openBrace) depth += 1
    else if ((byte | braceBit) === closeBrace) depth -= 1
  }
  scan.depth = depth
  return at
}

/** The position of the quote that ends a string; -1 where these bytes do not have it. */
function endOfText(scan: Scan, bytes: Uint8Array, from: number): number {
  let at = scan.isEscaped ? from + 1 : from
  scan.isEscaped = false
  for (;;) {
    for (const stop = Math.min(bytes.length, at + stepBytes); at < stop; ) {
      const byte = bytes[at]
      if (byte === quote) return at
      at += byte === backslash ? 2 : 1
    }
    const found = at < bytes.length ? bytes.indexOf(quote, at) : -1
    const end = found < 0 ? bytes.length : found
    let escapes = end
    while (escapes > at && bytes[escapes - 1] === backslash) escapes -= 1
    const isEscaped = at > end || (end - escapes) % 2 === 1
    if (found < 0) {
      scan.isEscaped = isEscaped
      return -1
    }
    if (!isEscaped) return found
    at = found + 1
  }
}

function beginKeeping(scan: Scan, at: number): void {
  scan.keptFrom = at
  scan.kept = []
  scan.keptBytes = 0
}

/** Copies what is kept of these bytes, unless it is longer than anything of interest. */
function keep(scan: Scan, bytes: Uint8Array, end: number): void {
  scan.keptBytes += end - scan.keptFrom
  if (scan.keptBytes <= valueBytesMax) scan.kept.push(bytes.slice(scan.keptFrom, end))
  else scan.kept = []
}

/** What was kept, as text; undefined where it is too long. */
function takeKept(scan: Scan, bytes: Uint8Array, end: number, bytesMax: number): string | undefined {
  const bytesInAll = scan.keptBytes + end - scan.keptFrom
  if (bytesInAll <= bytesMax) keep(scan, bytes, end)
  const text = bytesInAll <= bytesMax ? decoder.decode(Buffer.concat(scan.kept)) : undefined
  scan.keptFrom = -1
  scan.kept = []
  return text
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
