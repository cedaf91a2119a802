// The plain record that every handler and admin operation gets. Opens a database into one and closes it again.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { putIssuerKeySet } from '../db/issuers.ts'
import { type Database, type Orm, openDatabase } from '../db/open.ts'
import { listSigningKeys } from '../db/signing-keys.ts'
import { listSpentDays } from '../db/usage.ts'
import { dropExpiredSubjectTokens, dropSubjectTokens, listUsedSubjectTokens } from '../db/used-subject-tokens.ts'
import { createWriter, type Writer } from '../db/write.ts'
import type { Config } from './config.ts'
import { describeError, Fault, type FaultCode } from './fault.ts'
import type { Fetch, Outbound } from './federation/issuer/guarded-fetch.ts'
import { createIssuerKeys, type IssuerKeys } from './federation/issuer/issuer-keys.ts'
import { privateNetworksFor } from './federation/issuer/issuer-url.ts'
import { createReplayGuard, type ReplayGuard } from './federation/replay.ts'
import type { OperationDoc } from './http/operation-doc.ts'
import { createRateLimiter, noRateLimit, type RateLimiter } from './http/rate-limit.ts'
import type { Params, Route } from './http/router.ts'
import { createModelLists, type ModelLists } from './inference/models/model-lists.ts'
import { createCredentials } from './inference/upstream/credentials.ts'
import { nameInstallation } from './inference/upstream/forwarding-loop.ts'
import { configuredUpstream, type Upstream } from './inference/upstream/targets.ts'
import { createKeyRates, type KeyRates } from './keys/key-rates.ts'
import { createSpending, type Spending } from './keys/spending.ts'
import { createTokenCache, type TokenCache } from './keys/token-cache.ts'
import { databaseWaitMillisecondsMax } from './limits.ts'
import type { Log } from './observe/log.ts'
import { createPresets, type Presets } from './presets/versions.ts'
import { loadRegistry, putUpstream, type Registry } from './registry.ts'
import type { Peer } from './runtime.ts'
import { openMasterKey } from './tokens/keyring.ts'
import { openSigningKeys, type SigningKeys } from './tokens/signing-keys.ts'
import { createMutex, type RunExclusive } from './values/mutex.ts'

/** What admin operations need: a database that this process owns. */
export type AdminContext = {
  config: Config
  database: Database
  orm: Orm
  writer: Writer
  registry: Registry
  issuerKeys: IssuerKeys
  outbound: Outbound
  spending: Spending
  presets: Presets
  /** What changes the database takes its turn. */
  runExclusive: RunExclusive
  /** Set once this process serves. */
  signingKeys?: SigningKeys
  /** Milliseconds since 1970, UTC. Operators set this clock, also back. */
  now: () => number
  /** Milliseconds that only ever grow. Whatever counts from a moment in this process counts with these. */
  monotonic: () => number
  log: Log
}

/** What endpoints need besides: who we are, what signs, and how to reach the upstream. */
export type Context = AdminContext & {
  baseUrl: string
  signingKeys: SigningKeys
  fetch: Fetch
  exchangeRate: RateLimiter
  replayGuard: ReplayGuard
  keyRates: KeyRates
  verifiedTokens: TokenCache
  modelLists: ModelLists
  /** How this installation names itself to upstreams. */
  via: string
  /** What an upstream asks of its callers. */
  credentialOf: (upstream: Upstream) => Promise<string | undefined>
}

/** What is known of a request beside itself. `requestId` is ours, a UUID that sorts by time, and goes out as `x-request-id`. */
export type RequestInfo = { requestId: string; peer: Peer; clientAddress: string | null; params: Params }

/** A route with its handler, and how it tells a fault where that is not the common error shape. */
export type Endpoint = Route<(request: Request, context: Context, info: RequestInfo) => Promise<Response>> & {
  openapi: OperationDoc
  toResponse?: (fault: Fault, requestId: string) => Response
}

/** What comes from outside and differs in tests. */
export type Dependencies = {
  now: () => number
  monotonic: () => number
  /** From 0 to below 1. */
  random: () => number
  fetch: Fetch
  resolve: Outbound['resolve']
  usesProxy: boolean
  log: Log
  onBroken: (error: unknown) => void
}

const codeOfRefusal = {
  missing: 'configuration',
  owned: 'conflict',
  newer_schema: 'configuration',
  unreadable: 'configuration',
} as const satisfies Record<string, FaultCode>

const hints = {
  missing: '; run: latchkey init',
  owned: '; while that is a server, run commands as its user, with the same LATCHKEY_DATABASE_URL',
  newer_schema: '',
  unreadable: '',
}

/**
 * Opens the database as its only owner. With `create`, a missing file and its folder are made.
 * @throws Fault `configuration`, or `conflict` while another process owns the file
 */
export async function openContext(
  config: Config,
  dependencies: Dependencies,
  { create }: { create: boolean },
): Promise<AdminContext> {
  const { now, monotonic, random, fetch, resolve, usesProxy, log, onBroken } = dependencies
  if (create) createFolder(dirname(config.databasePath))
  const database = await openDatabase({ path: config.databasePath, create, synchronous: config.databaseSynchronous })
  if ('refused' in database) {
    throw new Fault(codeOfRefusal[database.refused], `${database.message}${hints[database.refused]}`, {
      reason: `database_${database.refused}`,
      cause: database.cause,
    })
  }
  const { orm } = database
  const writer = createWriter(database, (error) => {
    log('error', 'database_broken', { reason: describeError(error) })
    onBroken(error)
  })
  const { registry, spending } = await loadOrRefuse(database, now())
  const { insecureIssuers, upstreamUrl } = config
  if (upstreamUrl !== undefined) putUpstream(registry, configuredUpstream(upstreamUrl))
  const privateNetworks = () => privateNetworksFor(config, registry.organizations.size)
  const outbound: Outbound = { fetch, resolve, usesProxy, insecureIssuers, privateNetworks }
  const issuerKeys = createIssuerKeys({
    outbound,
    now,
    monotonic,
    random,
    log,
    keep: async (issuer, keySet) => {
      if (registry.issuers.get(issuer.id) === issuer) await writer.write([putIssuerKeySet(orm, keySet)])
    },
  })
  const runExclusive = createMutex()
  const presets = createPresets({ orm, writer, registry, now, runExclusive })
  const stored = { config, database, orm, writer, registry, spending, presets, runExclusive }
  return { ...stored, issuerKeys, outbound, now, monotonic, log }
}

/** The open finds damage of the file's head; damage further in shows when the rows are read. */
async function loadOrRefuse(
  { orm, ...database }: Database,
  now: number,
): Promise<{ registry: Registry; spending: Spending }> {
  try {
    return { registry: await loadRegistry(orm), spending: createSpending(await listSpentDays(orm), now) }
  } catch (cause) {
    await database.close().catch(() => {})
    throw new Fault(
      'configuration',
      `The database ${JSON.stringify(database.path)} cannot be read; it may be damaged: restore it from a backup`,
      { reason: 'database_unreadable', cause },
    )
  }
}

/**
 * Tries again while another process owns the database for a moment, up to `databaseWaitMillisecondsMax`.
 * @throws Fault of the last attempt
 */
export async function retryWhileOwned<Result>(attempt: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + databaseWaitMillisecondsMax
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const isOwned = error instanceof Fault && error.reason === 'database_owned'
      if (!isOwned || performance.now() > deadline) throw error
      // At random, or those that wait would meet at every attempt.
      await pause(20 + Math.random() * 80)
    }
  }
}

/** Whether `init` has finished on this database. */
export function isInitialized({ registry }: AdminContext): boolean {
  return registry.organizations.size > 0
}

/**
 * What serving needs besides an open database.
 * @throws Fault `configuration` when the database was never initialized or the master key does not fit
 */
export async function openServing(admin: AdminContext, baseUrl: string, fetch: Fetch): Promise<Context> {
  if (!isInitialized(admin)) throw notInitialized(admin.config)
  const rows = await listSigningKeys(admin.orm)
  const masterKey = await openMasterKey(admin.config.masterKey, rows)
  const signingKeys = await openSigningKeys(rows, masterKey)
  admin.signingKeys = signingKeys
  const { rateLimit } = admin.config
  const exchangeRate = rateLimit === undefined ? noRateLimit : createRateLimiter(rateLimit)
  return {
    ...admin,
    baseUrl,
    signingKeys,
    fetch,
    exchangeRate,
    replayGuard: await openReplayGuard(admin),
    keyRates: createKeyRates(),
    verifiedTokens: createTokenCache(signingKeys),
    modelLists: createModelLists(admin.monotonic),
    via: nameInstallation(admin.registry),
    credentialOf: createCredentials(masterKey, admin.config.upstreamApiKey),
  }
}

async function openReplayGuard({ orm, writer, now, monotonic }: AdminContext): Promise<ReplayGuard> {
  await writer.write([dropExpiredSubjectTokens(orm, now())])
  return createReplayGuard({
    known: await listUsedSubjectTokens(orm, now()),
    keep: (row) => writer.appendUsedToken(row),
    drop: (tokens) => writer.write(dropSubjectTokens(tokens)),
    now: now(),
    monotonic,
  })
}

export function notInitialized({ databasePath }: Config): Fault {
  return new Fault(
    'configuration',
    `The database ${JSON.stringify(databasePath)} is not initialized; run: latchkey init`,
  )
}

/** Waits for queued rows, then closes the database. */
export async function closeContext({ writer, database }: AdminContext): Promise<void> {
  await writer.close()
  await database.close()
}

function createFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new Fault(
      'configuration',
      `The data folder ${JSON.stringify(path)} cannot be made: ${(error as Error).message}`,
      { cause: error },
    )
  }
}
