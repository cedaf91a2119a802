// An access token for a workload, from the cache of this user or by an exchange. Processes that ask at the same time
// share one exchange.
import { rm } from 'node:fs/promises'
import { Fault } from '../fault.ts'
import { type AccessToken, checkBaseUrl, exchangeToken } from './exchange.ts'
import { withFileLock } from './file-lock.ts'
import { distinguishIdentity, type Identity } from './identity.ts'
import { type Audience, distinguishContent, type Platform, readIdentityToken } from './identity-token.ts'
import { openTokenFolder, readEntry, tokenPath, writeEntry } from './token-folder.ts'

/** `url` has passed `checkBaseUrl`. */
export type TokenSource = { url: string; policy: string; identity: Identity; audience: Audience }
/** `now` is in milliseconds since 1970. */
export type AgentDependencies = { platform: Platform; now: () => number; userAgent: string }

/** A token with less time left is renewed, so that a request that starts now can end. */
const remainingMillisecondsMin = 120_000

/** The values of the options; undefined and '' mean that the option is not set. */
export type SourceOptions = { url: string; policy: string; identity: Identity; audience?: string; allowsHttp: boolean }

/** Completes the options: the audience from the origin of the URL. */
export function tokenSource({ url, policy, identity, audience = '', allowsHttp }: SourceOptions): TokenSource {
  const base = checkBaseUrl(url, { allowsHttp })
  return {
    url: base,
    policy,
    identity,
    audience:
      audience === '' ? { value: new URL(base).origin, isDefault: true } : { value: audience, isDefault: false },
  }
}

/** Reads the identity, and exchanges it. Nothing is cached. Throws a fault. */
export async function exchangeIdentity(source: TokenSource, dependencies: AgentDependencies): Promise<AccessToken> {
  const { platform, now, userAgent } = dependencies
  const subjectToken = await readIdentityToken(source.identity, source.audience, platform)
  const { url, policy } = source
  return exchangeToken({ url, policy, subjectToken }, { fetch: platform.fetch, now, userAgent })
}

/**
 * Returns a token with at least two minutes left, or as much as the server gives. With `force`, the token was issued
 * after the call. Callers that wait for the same exchange share its failure too. Throws a fault.
 */
export async function findAccessToken(
  source: TokenSource,
  { force }: { force: boolean },
  dependencies: AgentDependencies,
): Promise<AccessToken> {
  const { platform, now } = dependencies
  const calledAt = now()
  const path = await pathOf(source, platform)
  const findUsable = async () => {
    const token = tokenOf(await readEntry(`${path}.json`))
    if (token === undefined || token.expiresAt <= now() || token.issuedAt > now()) return undefined
    if (token.issuedAt >= calledAt) return token
    return !force && token.expiresAt - now() >= remainingMillisecondsMin ? token : undefined
  }
  const exchange = async () => {
    const shared = await findUsable()
    if (shared !== undefined) return shared
    const failed = await readEntry(`${path}.failure`)
    // A failure of the future was written before the clock was set.
    if (failed !== undefined && Number(failed.at) >= calledAt && Number(failed.at) <= now()) throw faultOf(failed)
    try {
      const token = await exchangeIdentity(source, dependencies)
      await writeEntry(`${path}.json`, token)
      return token
    } catch (error) {
      if (error instanceof Fault) {
        const { message, hint } = error
        await writeEntry(`${path}.failure`, { at: now(), message, hint })
      }
      throw error
    }
  }
  return (await findUsable()) ?? (await withFileLock(`${path}.lock`, exchange))
}

/** Removes the token that is kept for a source. Throws a fault. */
export async function forgetAccessToken(source: TokenSource, platform: Platform): Promise<void> {
  await rm(`${await pathOf(source, platform)}.json`, { force: true })
}

/** Where the token is kept, without extension. */
async function pathOf({ url, policy, identity, audience }: TokenSource, platform: Platform): Promise<string> {
  const folder = await openTokenFolder(platform.environment)
  const workload = [
    distinguishIdentity(identity, platform.environment),
    await distinguishContent(identity, audience, platform),
  ]
  return tokenPath(folder, [url, policy, ...workload, audience.value])
}

function tokenOf(entry: Record<string, unknown> | undefined): AccessToken | undefined {
  const { text, issuedAt, expiresAt } = entry ?? {}
  const isToken = typeof text === 'string' && typeof issuedAt === 'number' && typeof expiresAt === 'number'
  return isToken ? { text, issuedAt, expiresAt } : undefined
}

function faultOf({ message, hint }: Record<string, unknown>): Fault {
  return new Fault('unavailable', String(message), { hint: String(hint) })
}
