// What admin operations are given: the database that this process owns, and all that it keeps in memory.
import type { Database, Orm } from '../../db/open.ts'
import type { Writer } from '../../db/write.ts'
import type { Config } from '../config.ts'
import type { Outbound } from '../federation/issuer/guarded-fetch.ts'
import type { IssuerKeys } from '../federation/issuer/issuer-keys.ts'
import type { Spending } from '../keys/spending.ts'
import type { Log } from '../observe/log.ts'
import type { Presets } from '../presets/versions.ts'
import type { Registry } from '../registry.ts'
import type { RunExclusive, RunShared } from '../scheduling/mutex.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'

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
  /** What changes the database takes its turn; what may change it together shares one. */
  runExclusive: RunExclusive
  runShared: RunShared
  /** Where this process serves. */
  signingKeys?: SigningKeys
  /** Milliseconds since 1970, UTC. Operators set this clock, also back. */
  now: () => number
  /** Milliseconds that only ever grow. Whatever counts from a moment in this process counts with these. */
  monotonic: () => number
  log: Log
}

/** Whether `init` has finished on this database. */
export function isInitialized({ registry }: AdminContext): boolean {
  return registry.organizations.size > 0
}
