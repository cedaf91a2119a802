// Keeps what this node holds in memory equal to a database that other nodes change too. Before a request is judged, a
// refresh that started after its arrival has shown what changed, and it was loaded. A process that holds its database makes
// every change itself and never refreshes.
import { setTimeout as pause, setImmediate } from 'node:timers/promises'
import type { Orm } from '../../db/file/open.ts'
import { isStale, listChangedSince } from '../../db/remote/refresh.ts'
import { unreachableCode } from '../../db/remote/server-errors.ts'
import { serverError, tooSlow } from '../../db/remote/server-failure.ts'
import type { Position, RefreshResult, Revision, SharedDatabase } from '../../db/remote/shared-database.ts'
import type { ChangeKind } from '../../db/tables/admin-changes.ts'
import type { Basis, NodeMemory } from '../../db/write/change-queue.ts'
import type { Spending } from '../keys/spending.ts'
import { keeping, type Registry } from '../registry/registry.ts'
import { createMutex } from '../scheduling/mutex.ts'
import { isLag, onReplica, setbackOf } from './setback.ts'

export type Follow = {
  /**
   * Resolves when this node obeys every change that was acknowledged before the call; undefined if it already does.
   * @throws an error that is `isUnreachable`
   */
  fresh: () => Promise<void> | undefined
  /**
   * For a request that has waited for its client: resolves when what is in memory was true a second ago or later;
   * undefined if it was.
   * @throws an error that is `isUnreachable`
   */
  recent: () => Promise<void> | undefined
  /** Runs a change that depends on what it reads, again if another node has changed something meanwhile. */
  attempt: <Result>(act: (basis: Basis | undefined) => Promise<Result>) => Promise<Result>
  /** The id of the newest admin change that this node obeys; undefined in a process that holds its database. */
  revision: () => number | undefined
  /** The database and the newest row of its ledger, as far as this node knows; undefined in a process that holds its database. */
  known: () => { installation: string; usageId: number } | undefined
  /** How many nodes serve this database, at least one. */
  liveNodes: () => number
  /** Whether a refresh has succeeded in the last seconds. A serving node refreshes every second. */
  isUpToDate: () => boolean
  /** Milliseconds since what is in memory was true for certain; 0 in a process that holds its database. */
  age: () => number
  /** Called after a change of the signing keys by another node. */
  onSigningKeys: (() => Promise<void>)[]
}

/** For a process that holds its database. */
export function followNobody(): Follow {
  return {
    fresh: () => undefined,
    recent: () => undefined,
    attempt: (act) => act(undefined),
    revision: () => undefined,
    known: () => undefined,
    liveNodes: () => 1,
    isUpToDate: () => true,
    age: () => 0,
    onSigningKeys: [],
  }
}

export type FollowOptions = {
  shared: SharedDatabase
  orm: Orm
  registry: Registry
  spending: Pick<Spending, 'add'>
  /** Loads everything again. */
  reload: () => Promise<Registry>
  /** What was known when memory was loaded, and of which installation. */
  start: Position & { installation: string }
  monotonic: () => number
  /** Called after each refresh, with its duration. */
  onRefresh: (milliseconds: number) => void
  /** Called once when the server has a different database. */
  onReplaced: (error: Error) => void
  /** Called with the newest row of the ledger; the refresh waits for it. */
  onUsage?: (usageId: number) => Promise<void>
}

/** More changes than this are not loaded one by one. */
const changesLoadedMax = 1_000
/** A refresh that reads more and more parts does not keep up. */
const refreshMillisecondsMax = 2_000
const attemptsMax = 20
/** Two reports of a node, and a refresh that takes its time. */
const refreshAgeMillisecondsMax = 4_000
/** A serving node refreshes this often, also without requests. */
const recentMilliseconds = 1_000

/** Follows the other nodes of a server database. `following` is for the writer of this node. */
export function followOthers(options: FollowOptions): Follow & { following: NodeMemory } {
  const { monotonic, shared, spending, start } = options
  const { installation, ...position } = { ...start }
  const onSigningKeys: Follow['onSigningKeys'] = []
  let liveNodes = 1
  let last = { beganAt: Number.NEGATIVE_INFINITY, endedAt: Number.NEGATIVE_INFINITY }
  let replaced: Error | undefined
  // Two loads at once could end in the other order, and leave an older row in memory.
  const { runExclusive } = createMutex()

  async function refresh(): Promise<void> {
    if (replaced !== undefined) throw replaced
    const beganAt = monotonic()
    let seen: RefreshResult
    do {
      // What was read counts, so the next refresh goes on where this one ends.
      if (monotonic() - beganAt > refreshMillisecondsMax) throw serverError(tooSlow, unreachableCode)
      seen = await shared.refresh({ ...position })
      const setback = setbackOf(seen, position, installation)
      if (setback !== undefined) {
        const isReplica = await isLag(shared.refresh, { ...position }, installation)
        replaced ??= new Error(isReplica ? onReplica : setback)
        options.onReplaced(replaced)
        throw replaced
      }
      countSpent(seen)
    } while (seen.hasMoreUsage)
    await options.onUsage?.(position.usageId)
    if (seen.revision.id > position.revision.id) await runExclusive(() => loadUntil(seen.revision))
    last = { beganAt, endedAt: monotonic() }
    options.onRefresh(last.endedAt - beganAt)
  }

  async function loadUntil(revision: Revision): Promise<void> {
    if (revision.id <= position.revision.id) return
    await load(options, position.revision.id, onSigningKeys)
    position.revision = revision
  }

  function countSpent(seen: RefreshResult): void {
    for (const [keyId, day, cost] of seen.spent) spending.add(keyId, day * dayMilliseconds, cost)
    position.usageId = seen.usageId
    position.auditId = seen.auditId
    position.commit = seen.commit
    liveNodes = Math.max(1, seen.liveNodes)
  }

  const fresh = createSharedTurn(refresh, monotonic)
  return {
    fresh,
    recent: () => (monotonic() - last.beganAt < recentMilliseconds ? undefined : fresh()),
    attempt: (act) => attempt(fresh, position, act),
    revision: () => position.revision.id,
    known: () => ({ installation, usageId: position.usageId }),
    liveNodes: () => liveNodes,
    isUpToDate: () => monotonic() - last.endedAt < refreshAgeMillisecondsMax,
    age: () => (replaced === undefined ? monotonic() - last.beganAt : Number.POSITIVE_INFINITY),
    onSigningKeys,
    following: {
      revision: () => position.revision,
      refresh: fresh,
      takeIn: ({ basis, revision }, loadOwn) =>
        runExclusive(async () => {
          // A refresh that has seen the commit has loaded it, with what came after it.
          if (position.revision.id > basis.id) return
          if (await loadOwn()) position.revision = revision ?? basis
        }),
    },
  }
}

const dayMilliseconds = 24 * 60 * 60 * 1_000

async function attempt<Result>(
  fresh: () => Promise<void>,
  position: Position,
  act: (basis: Basis) => Promise<Result>,
): Promise<Result> {
  for (let number = 1; ; number += 1) {
    await fresh()
    try {
      return await act({ revision: position.revision.id })
    } catch (error) {
      if (!isStale(error) || number === attemptsMax) throw error
    }
  }
}

/** A load balancer that prefers the fastest node must not prefer the one that fails. */
const failureMilliseconds = 1_000
/** Who waited this long for work that failed does not wait for more. */
const patienceMilliseconds = 500

/**
 * Runs the work one at a time. A call joins work that has not begun, never work that runs already. A failure takes a
 * second or more.
 */
function createSharedTurn(work: () => Promise<void>, monotonic: () => number): () => Promise<void> {
  let running: Promise<void> | undefined
  let waiting: Promise<void> | undefined

  async function run(startedAt: number): Promise<void> {
    try {
      await running?.catch((error: unknown) => {
        if (monotonic() - startedAt > patienceMilliseconds) throw error
      })
      // Requests of the same turn of the event loop share it.
      await setImmediate()
    } finally {
      waiting = undefined
    }
    running = work().finally(() => {
      running = undefined
    })
    await running
  }

  async function runOrFailSlowly(): Promise<void> {
    const startedAt = monotonic()
    try {
      await run(startedAt)
    } catch (error) {
      await pause(Math.max(0, failureMilliseconds - (monotonic() - startedAt)))
      throw error
    }
  }

  return () => {
    waiting ??= runOrFailSlowly()
    return waiting
  }
}

/**
 * Loads what changed after a revision. What is loaded can be newer, and is then loaded again. A kind that only a newer
 * program knows can change anything, so everything is loaded.
 */
async function load(options: FollowOptions, since: number, onSigningKeys: Follow['onSigningKeys']): Promise<void> {
  const changes = await listChangedSince(options.orm, since, changesLoadedMax + 1)
  const isGap = changes.length > changesLoadedMax || changes.some(({ kind }) => !Object.hasOwn(keeping, kind))
  if (isGap) await loadAll(options)
  else await loadChanged(options, changes)
  if (isGap || changes.some(({ kind }) => kind === 'signing_key')) for (const renew of onSigningKeys) await renew()
}

async function loadAll({ registry, reload }: FollowOptions): Promise<void> {
  const { onDeleted, onPolicyLoaded, onBudgetsChanged } = registry
  Object.assign(registry, await reload(), { onDeleted, onPolicyLoaded, onBudgetsChanged })
  for (const act of onBudgetsChanged) await act()
}

/** In the order of a start, whatever the order of the changes: a session is loaded with its key. */
async function loadChanged(
  { registry, orm }: FollowOptions,
  changes: readonly { kind: ChangeKind; targetId: string }[],
): Promise<void> {
  const byKind = Map.groupBy(changes, ({ kind }) => kind)
  for (const [kind, { load }] of Object.entries(keeping) as [ChangeKind, (typeof keeping)[ChangeKind]][]) {
    const ids = new Set(byKind.get(kind)?.map(({ targetId }) => targetId))
    if (ids.size > 0) await load(registry, orm, [...ids])
  }
}
