// The form of ids on the wire and as people type them. It does not know which ids exist.

/** A UUID of any version, in either case (RFC 9562 §4). */
export const uuidText = /^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/

/** The public identifier of a key (reference: Credentials). */
export const keyHashText = /^[0-9a-f]{64}$/
