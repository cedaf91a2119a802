// Checks that a path means the same to us and to a proxy in front of us. It knows no route.

/** Backslashes, empty segments and dot segments, encoded or not: a URL parser may remove them or turn them into slashes. */
const ambiguous = /\\|\/(?:\.|%2e){0,2}(?:\/|$)/i

/**
 * Whether a path has no backslash, no dot segment and no empty segment. Where the runtime has already removed these from `path`, `sent` has
 * the segments as they were sent, each decoded; they must equal those of `path`.
 */
export function isPlainPath(path: string, sent: readonly string[] | undefined): boolean {
  if (!path.startsWith('/') || ambiguous.test(path)) return false
  if (sent === undefined || path === `/${sent.join('/')}`) return true
  try {
    const segments = path.slice(1).split('/').map(decodeURIComponent)
    return segments.length === sent.length && segments.every((segment, index) => segment === sent[index])
  } catch {
    return false
  }
}
