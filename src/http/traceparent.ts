// The `traceparent` header (W3C Trace Context): which trace a request belongs to. It makes no spans.

/**
 * The trace id of a valid header, undefined for any other text. A version later than 00 may have more fields after the four that are known.
 */
export function parseTraceparent(text: string | null): { traceId: string } | undefined {
  if (text === null) return undefined
  const [, version, traceId = '', parentId = '', rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  return /^0+$/.test(traceId) || /^0+$/.test(parentId) ? undefined : { traceId }
}
