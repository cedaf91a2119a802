// What is signed of the transparent audit log: epochs, checkpoints, and the keys that sign.
import { and, asc, desc, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type AuditKey, auditKeys, type LogCheckpoint, logCheckpoints, logEpochs } from '../schema/log-schema.ts'
import { installation } from '../schema/node-schema.ts'
import type { Statement } from '../write/rows.ts'

/** The random id of this database, which every log of it has in its name. */
export async function readInstallationId(orm: Orm): Promise<string> {
  const [found] = await orm.select().from(installation)
  return found?.id ?? ''
}

/** The name of the epoch that is in force; undefined until the first begins. */
export async function readLogEpoch(orm: Orm): Promise<{ number: number; name: string } | undefined> {
  const [found] = await orm.select().from(logEpochs).orderBy(desc(logEpochs.number)).limit(1)
  return found
}

/** The names of the epochs of which the database has something, over or not. */
export async function listLogEpochs(orm: Orm): Promise<string[]> {
  const names = sql<string>`select name from ${logEpochs} union select epoch from ${logCheckpoints}`
  return (await orm.all<{ name: string }>(names)).map(({ name }) => name)
}

/** The newest checkpoint of all epochs. */
export async function lastCheckpoint(orm: Orm): Promise<LogCheckpoint | undefined> {
  const [found] = await orm.select().from(logCheckpoints).orderBy(desc(logCheckpoints.at)).limit(1)
  return found
}

export function insertLogEpoch(orm: Orm, epoch: { number: number; name: string; beganAt: number }): Statement {
  return orm.insert(logEpochs).values(epoch)
}

export async function newestCheckpoint(orm: Orm, epoch: string): Promise<LogCheckpoint | undefined> {
  const [found] = await orm
    .select()
    .from(logCheckpoints)
    .where(eq(logCheckpoints.epoch, epoch))
    .orderBy(desc(logCheckpoints.size))
    .limit(1)
  return found
}

export async function findCheckpoint(orm: Orm, epoch: string, size: number): Promise<LogCheckpoint | undefined> {
  const isIt = and(eq(logCheckpoints.epoch, epoch), eq(logCheckpoints.size, size))
  const [found] = await orm.select().from(logCheckpoints).where(isIt)
  return found
}

/** Checkpoints of an epoch that are larger than `afterSize`, the smallest first. */
export function listCheckpoints(orm: Orm, epoch: string, afterSize: number, most: number): Promise<LogCheckpoint[]> {
  return orm
    .select()
    .from(logCheckpoints)
    .where(and(eq(logCheckpoints.epoch, epoch), sql`${logCheckpoints.size} > ${afterSize}`))
    .orderBy(asc(logCheckpoints.size))
    .limit(most)
}

/** The newest checkpoint of an epoch that has a signature of a witness. */
export async function newestCosigned(orm: Orm, epoch: string): Promise<LogCheckpoint | undefined> {
  const [found] = await orm
    .select()
    .from(logCheckpoints)
    .where(and(eq(logCheckpoints.epoch, epoch), isNotNull(logCheckpoints.cosignedAt)))
    .orderBy(desc(logCheckpoints.size))
    .limit(1)
  return found
}

export function insertCheckpoint(orm: Orm, checkpoint: LogCheckpoint): Statement {
  return orm.insert(logCheckpoints).values(checkpoint)
}

/** Adds signatures of witnesses to a checkpoint. */
export function updateCheckpointNote(
  orm: Orm,
  { epoch, size, note, cosignedAt }: Omit<LogCheckpoint, 'at'>,
): Statement {
  return orm
    .update(logCheckpoints)
    .set({ note, cosignedAt })
    .where(and(eq(logCheckpoints.epoch, epoch), eq(logCheckpoints.size, size)))
}

/** All audit keys, oldest first. The newest one without an end signs. */
export function listAuditKeys(orm: Orm): Promise<AuditKey[]> {
  return orm.select().from(auditKeys).orderBy(asc(auditKeys.createdAt))
}

export function insertAuditKey(orm: Orm, key: AuditKey): Statement {
  return orm.insert(auditKeys).values(key)
}

export function retireAuditKeys(orm: Orm, retiredAt: number): Statement {
  return orm.update(auditKeys).set({ retiredAt }).where(isNull(auditKeys.retiredAt))
}

export function updateAuditPrivateKey(orm: Orm, id: string, privateKeyEncrypted: string): Statement {
  return orm.update(auditKeys).set({ privateKeyEncrypted }).where(eq(auditKeys.id, id))
}
