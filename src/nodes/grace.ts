// Serves inference for a bounded time while a server database is away or takes no commits, where an operator has chosen so
// (LATCHKEY_DATABASE_GRACE). Usage waits on the disk of this machine meanwhile. This breaks the promise that a change is obeyed at once, so it
// is off by default, and what other nodes can use up is refused: exchanges, and requests with a budget.
import { join } from 'node:path'
import { openWaitingUsage, type SendUsage, type WaitingUsage } from '../../db/remote/waiting-usage.ts'
import { usageStatements } from '../../db/write/ledger-tables.ts'
import { describeError, Fault } from '../fault.ts'
import type { InferenceGrace } from '../inference/without-database.ts'
import type { Log } from '../observe/log.ts'
import type { WriteCheck } from '../observe/write-check.ts'
import { describeDenial } from '../runtime/file-access.ts'
import { every } from '../scheduling/every.ts'
import type { Config } from '../settings/config.ts'
import type { Follow } from './follow.ts'

export type Grace = Pick<WaitingUsage, 'apply' | 'rows'> &
  InferenceGrace & {
    /** Commits usage, or keeps it until the database is back. */
    commitUsage: WaitingUsage['commit']
    /** Whether requests are served without the database now. */
    isUsed: () => boolean
    /** Applies what waits, and logs what changes, once a second. Returns a function that ends it. */
    begin: () => () => void
    close: () => Promise<void>
  }

type GraceParts = {
  config: Pick<Config, 'databaseServer' | 'listen'>
  send: SendUsage
  follow: Pick<Follow, 'age' | 'isUpToDate' | 'known'>
  writeCheck: Pick<WriteCheck, 'isFailing' | 'failingFor'>
  log: Log
}

/** Where usage waits on this machine: nodes with different ports share a folder. Undefined where it never does. */
export function waitingPath({ databaseServer, listen }: GraceParts['config']): string | undefined {
  const grace = databaseServer?.grace
  return grace && join(grace.folder, `usage-waiting-${listen.port}.jsonl`)
}

/**
 * Undefined where the settings give none.
 * @throws Fault `configuration` if usage cannot wait in its folder
 */
export async function openGrace({ config, send, follow, writeCheck, log }: GraceParts): Promise<Grace | undefined> {
  const [path, grace] = [waitingPath(config), config.databaseServer?.grace]
  if (path === undefined || grace === undefined) return undefined
  const known = () => {
    const found = follow.known()
    if (found === undefined) throw new TypeError('A database file is never away')
    return found
  }
  const onWaiting = (isWaiting: boolean, rows: number) =>
    isWaiting ? log('warn', 'usage_waits', { rows, file: path }) : log('info', 'usage_applied')
  const onRefused = (why: string, file: string) => log('error', 'usage_refused', { reason: why, file })
  const waiting = await openWaitingUsage({
    path,
    send,
    statementsFor: usageStatements,
    known,
    onWaiting,
    onRefused,
  }).catch((error: unknown) => {
    const why = describeDenial(path, { toWrite: true }) ?? describeError(error)
    throw new Fault('configuration', `LATCHKEY_DATABASE_GRACE needs the file ${path}, which cannot be written: ${why}`)
  })
  const { milliseconds } = grace
  const isAway = () => !follow.isUpToDate() || writeCheck.isFailing()
  const mayServe = () => follow.age() < milliseconds && writeCheck.failingFor() < milliseconds && waiting.hasRoom()
  let isLogged = false
  const look = async () => {
    if (waiting.rows() > 0) await waiting.apply()
    if (!isLogged || (isAway() && mayServe())) return
    isLogged = false
    log('warn', 'database_grace_ended', { is_database_back: !isAway() })
  }
  return {
    apply: waiting.apply,
    rows: waiting.rows,
    commitUsage: waiting.commit,
    mayServe,
    isUncertain: () => isAway() || waiting.rows() > 0,
    isUsed: () => isAway() && mayServe(),
    noteUse: () => {
      if (isLogged) return
      isLogged = true
      const what = 'requests are served without the database: changes by other nodes are not obeyed until it is back'
      log('warn', 'database_grace_began', { seconds: milliseconds / 1_000, what })
    },
    begin: () => every(1_000, look, (error) => log('error', 'usage_not_applied', { reason: describeError(error) })),
    close: waiting.close,
  }
}
