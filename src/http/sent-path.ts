// Whether a path reads the same to us and to a proxy in front of us. It knows no route.

/** What a reader of URLs may take out or turn into a slash: backslashes, and segments that are empty or dots, encoded ones included. */
const ambiguous = /\\|\/(?:\.|%2e){0,2}(?:\/|$)/i

/**
 * Whether a path has no backslash, no dot segment and no empty segment. A runtime may have taken these out of `path` already: `sent` is then
 * the segments as they were sent, each decoded, and must be those of `path`.
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
