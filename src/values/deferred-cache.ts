// Caches that are made at their first use: lru-cache fills lists of as many entries as it may hold, which a start need not wait for.
import { LRUCache } from 'lru-cache'

/** Returns a function that returns one cache of the `max` values used last. */
export function deferCache<Value extends object>(max: number): () => LRUCache<string, Value> {
  let made: LRUCache<string, Value> | undefined
  return () => {
    made ??= new LRUCache<string, Value>({ max })
    return made
  }
}
