// What a node admits of rate limits: what it knows when it begins, and its part of the rate of exchanges.

import type { Database } from '../../db/file/open.ts'
import { newestKeyTime } from '../../db/tables/api-keys.ts'
import type { RateShare } from '../keys/key-rates.ts'
import type { RateLimit } from '../settings/config.ts'
import type { Follow } from './follow.ts'

type JoinOptions = { follow: Follow; database: Database; now: () => number }

/** Call it when memory is loaded. */
export async function joinRates({ follow, database, now }: JoinOptions): Promise<RateShare> {
  const newestKeyAt = database.shared === undefined ? 0 : await newestKeyTime(database.orm)
  return { liveNodes: follow.liveNodes, since: now(), newestKeyAt }
}

/** The part of an exchange rate that this node admits. A burst is admitted by each node. */
export function shareOf(limit: RateLimit | undefined, { liveNodes }: Pick<Follow, 'liveNodes'>): RateLimit | undefined {
  const nodes = liveNodes()
  return limit === undefined || nodes === 1 ? limit : { ...limit, perMinute: limit.perMinute / nodes }
}
