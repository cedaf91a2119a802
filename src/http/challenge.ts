// What a response without access says about how to get it.

/** A client without a credential learns where to get one (RFC 9728 §5.1). */
export function nameMetadata(headers: Headers, baseUrl: string): void {
  const challenge = headers.get('www-authenticate')
  if (challenge === null || !challenge.startsWith('Bearer')) return
  const { origin, pathname } = new URL(baseUrl)
  const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource${pathname}"`
  headers.set('www-authenticate', `${challenge}${challenge === 'Bearer' ? ' ' : ', '}${metadata}`)
}
