// Removes the credential of an upstream from what the upstream says, in returned headers and in the bodies of errors.
// Servers repeat credentials in error messages and request ids.

/** Shorter credentials are placeholders such as `EMPTY`, and may be part of any text. */
const charactersMin = 8
const replacement = '***'
const none: readonly string[] = []

/** The credentials of one call that are long enough to be removed. */
export function removable(credential: string | undefined, other?: string): readonly string[] {
  const isLong = (text: string | undefined): text is string => text !== undefined && text.length >= charactersMin
  if (!isLong(credential)) return isLong(other) ? [other] : none
  return credential === other || !isLong(other) ? [credential] : [credential, other]
}

export function redactHeader(value: string, credentials: readonly string[]): string {
  for (const text of credentials) {
    if (value.length >= text.length && value.includes(text)) return redactAll(value, credentials.flatMap(formsOf))
  }
  return value
}

/** The body without the credentials, even where they are split over chunks. */
export function redactBody(
  body: ReadableStream<Uint8Array>,
  credentials: readonly string[],
): ReadableStream<Uint8Array> {
  return body.pipeThrough(new TransformStream(transformer(credentials.flatMap(formsOf))))
}

function redactAll(text: string, forms: readonly string[]): string {
  return forms.reduce((left, form) => left.replaceAll(form, replacement), text)
}

/** The text itself, within a JSON string, with escaped slashes, and within a URL. */
function formsOf(text: string): string[] {
  const quoted = JSON.stringify(text).slice(1, -1)
  const forms = [text, quoted, quoted.replaceAll('/', '\\/'), encodeURIComponent(text)]
  return [...new Set(forms)].toSorted((one, other) => other.length - one.length)
}

/** Bytes are compared as Latin-1 text, so that no character is split. Holds back only what may begin a form. */
function transformer(forms: readonly string[]): Transformer<Uint8Array, Uint8Array> {
  const patterns = forms.map((form) => Buffer.from(form).toString('latin1'))
  let held = ''
  return {
    transform: (chunk, controller) => {
      const text = held + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
      const clean = redactAll(text, patterns)
      const kept = beginningLength(clean, patterns)
      held = clean.slice(clean.length - kept)
      if (clean.length > kept) controller.enqueue(Buffer.from(clean.slice(0, clean.length - kept), 'latin1'))
    },
    flush: (controller) => {
      if (held !== '') controller.enqueue(Buffer.from(held, 'latin1'))
    },
  }
}

/** The length of the longest end of a text with which a pattern begins. */
function beginningLength(text: string, patterns: readonly string[]): number {
  const lengths = patterns.map((pattern) => {
    let length = Math.min(pattern.length - 1, text.length)
    while (length > 0 && !text.endsWith(pattern.slice(0, length))) length--
    return length
  })
  return Math.max(...lengths)
}
