// The query of a request. It knows no parameter.

/** Only what follows the question mark is read: the Host header is part of `url`, and what it holds may be no host at all. */
export function queryOf({ url }: Pick<Request, 'url'>): URLSearchParams {
  return new URLSearchParams(url.slice(url.indexOf('?') + 1 || url.length))
}
