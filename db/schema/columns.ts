// Column types that several tables share.
import { integer, text } from 'drizzle-orm/sqlite-core'

/** Milliseconds since 1970 UTC. */
export const time = (name: string) => integer(name)
export const flag = (name: string) => integer(name, { mode: 'boolean' })
/** Pairs of names and values. */
export const pairs = (name: string) => text(name, { mode: 'json' }).$type<Record<string, string>>()
export const names = (name: string) => text(name, { mode: 'json' }).$type<string[]>()
