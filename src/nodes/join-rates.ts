// What a node knows when it begins to admit its part of the rate limits of keys.

import type { Database } from '../../db/file/open.ts'
import { newestKeyTime } from '../../db/tables/api-keys.ts'
import type { RateShare } from '../keys/key-rates.ts'
import type { Follow } from './follow.ts'

type JoinOptions = { follow: Follow; database: Database; now: () => number }

/** Call it when memory is loaded. */
export async function joinRates({ follow, database, now }: JoinOptions): Promise<RateShare> {
  const newestKeyAt = database.shared === undefined ? 0 : await newestKeyTime(database.orm)
  return { liveNodes: follow.liveNodes, since: now(), newestKeyAt }
}
