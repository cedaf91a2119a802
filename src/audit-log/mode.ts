// What the audit log covers, and where it is published: what settings say.

import type { LogSource } from '../../db/schema/log-schema.ts'

/** `changes`: without exchanges. */
export const auditLogModes = ['full', 'changes', 'off'] as const
export type AuditLogMode = (typeof auditLogModes)[number]

export function isCovered(source: LogSource, mode: AuditLogMode): boolean {
  return mode === 'full' || (mode === 'changes' && source !== 'exchanges')
}

export type AuditLogSettings = {
  mode: AuditLogMode
  /** The folder that gets checkpoints, tiles and entries; undefined for none. */
  folder: string | undefined
}
