// Whether the server responds, as the request that every view repeats found it last. Every view shows it at once, and what somebody sees meanwhile is marked as old.

/** @type {number | undefined} when it stopped to respond, in milliseconds since 1970 */
let awaySince
let returns = 0

/** @param {boolean} isThere @returns {boolean} whether that is new */
export function noteResponse(isThere) {
  const was = awaySince === undefined
  if (was && !isThere) awaySince = Date.now()
  if (isThere) awaySince = undefined
  if (!was && isThere) returns += 1
  return was !== isThere
}

/** Since when the server does not respond; undefined while it does. */
export const serverAwaySince = () => awaySince

/** How often the server came back: a failure to reach it is over with the next time. */
export const serverReturns = () => returns
