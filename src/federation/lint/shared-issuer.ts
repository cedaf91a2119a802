// Whether strangers to an organization can get tokens of an issuer: by its URL, or else by what an administrator answered.
import { isPublicHost } from '../issuer/issuer-url.ts'
import { kindOf } from './issuer-kinds.ts'
import type { LintedIssuer } from './witness.ts'

/**
 * Reports whether strangers can get tokens of an issuer. What is known of its URL decides first, and an answer can only
 * make the linter stricter there. Undefined: it depends on the installation, and nobody has answered.
 */
export function isShared({ issuerUrl, shared }: Pick<LintedIssuer, 'issuerUrl' | 'shared'>): boolean | undefined {
  const known = kindOf(issuerUrl, []).isShared(issuerUrl)
  if (known === true || shared === true) return true
  if (known === false || shared === false || !isPublicHost(issuerUrl)) return false
  return undefined
}

/** The name of the service if its issuer is known to be shared, whatever was answered. */
export function knownServiceOf(issuerUrl: string): string | undefined {
  const kind = kindOf(issuerUrl, [])
  return kind.isShared(issuerUrl) === true ? kind.title : undefined
}
