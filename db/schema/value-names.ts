// The values of columns that commands name too. It loads no library.

export const keyKinds = ['inference', 'management', 'management_read_only'] as const
export type KeyKind = (typeof keyKinds)[number]
/** Of management keys, weakest first: each role may do what those before it may do. */
export const roles = ['viewer', 'auditor', 'operator', 'admin'] as const
export type Role = (typeof roles)[number]
export const limitResets = ['daily', 'weekly', 'monthly'] as const
/** In the order in which they start. */
export const queueClasses = ['interactive', 'normal', 'batch'] as const
/** Whose turns are counted where requests of a key wait. */
export const fairBys = ['key', 'attribution'] as const
/** Which of several equal inference servers gets a request: any, the one of its session, or the one of its prompt. */
export const affinities = ['none', 'session', 'prefix'] as const
/** How the admin page proves itself to an issuer where it exchanges a code (RFC 6749 §2.3, RFC 7523). */
export const pageAuthentications = ['none', 'secret', 'private_key_jwt'] as const
export const keySources = ['discovery', 'jwks_url', 'jwks'] as const
