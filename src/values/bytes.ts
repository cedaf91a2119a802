// Text as UTF-8 bytes.

const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of UTF-8 bytes, or undefined when they are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** A text that the database returns whole: libSQL truncates at the first NUL when it reads, so a NUL is escaped. */
export function storableText(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\\u0000') : text
}
