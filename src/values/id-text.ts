// The form of ids on the wire and as people type them. It does not know which ids exist.

/** A UUID of any version, in either case (RFC 9562 §4). */
export const uuidText = /^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/

/** The public identifier of a key (reference: Credentials). */
export const keyHashText = /^[0-9a-f]{64}$/

/** How paths name a key: by its hash, which a rotation changes, or by its id. */
export const keyReferenceText = new RegExp(`${keyHashText.source}|${uuidText.source}`)

/** An API key within a text, in either case. */
export const apiKeyInText = /sk-lk-v1-[0-9a-f]{64}/i

/** The text with each API key cut off behind its prefix, for messages that quote what was sent. */
export function hideApiKeys(text: string): string {
  return text.replaceAll(new RegExp(apiKeyInText, 'gi'), 'sk-lk-v1-…')
}

/** Ids of another service, such as `wrkspc_01`, that its clients send along. */
export const foreignIdCharactersMax = 128
export const foreignIdText = /^[\w.:-]*$/
