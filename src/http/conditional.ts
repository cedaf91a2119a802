// Conditional requests for reading (RFC 9110 §13.1.2). entity-tag.ts has those for changes.

/** Whether the client has the response with this ETag. */
export function isKnown({ headers }: Request, etag: string): boolean {
  const given = (headers.get('if-none-match') ?? '').split(',').map((each) => each.trim().replace(/^W\//, ''))
  return given.includes(etag) || given.includes('*')
}
