// Column types that several tables share.
import { integer, text } from 'drizzle-orm/sqlite-core'

/** Milliseconds since 1970 UTC. */
export const time = (name: string) => integer(name)
export const flag = (name: string) => integer(name, { mode: 'boolean' })
/** Pairs of names and values. */
export const pairs = (name: string) => text(name, { mode: 'json' }).$type<Record<string, string>>()
export const names = (name: string) => text(name, { mode: 'json' }).$type<string[]>()

/** For a million characters, for one image and for one second of audio. */
export const unitPrices = {
  characterNanodollars: integer('character_nanodollars'),
  imageNanodollars: integer('image_nanodollars'),
  audioSecondNanodollars: integer('audio_second_nanodollars'),
}
