// A recorded history of admin changes and requests, and a checker that finds what no order of events can explain.

/**
 * Times are of one clock. The changes of a target are made one after the other; `allows` is the state that one leaves.
 * `admits` is what a change that lowers a rate limit leaves: it does not refuse everything.
 */
export type ChangeEvent = {
  target: string
  allows: boolean
  admits?: Rate
  startedAt: number
  endedAt: number
  node: number
}
export type RequestEvent = { target: string; accepted: boolean; startedAt: number; endedAt: number; node: number }
export type History = { changes: ChangeEvent[]; requests: RequestEvent[] }
export type Violation = { request: RequestEvent; change: ChangeEvent }
/** What each node may accept from a moment on: `atOnce` requests, and `perMinute` in each minute that follows. */
export type Rate = { atOnce: number; perMinute: number }

/**
 * Lists the requests whose outcome contradicts the last change that was acknowledged before they began, and that no
 * change which ran beside them explains. Where that change lowered a rate, lists those that exceed it at their node.
 */
export function findViolations({ changes, requests }: History): Violation[] {
  const byTarget = Map.groupBy(changes, ({ target }) => target)
  const contradictions = requests.flatMap((request) => {
    const ofTarget = byTarget.get(request.target) ?? []
    const last = ofTarget.findLastIndex(({ endedAt }) => endedAt < request.startedAt)
    const change = ofTarget[last]
    if (change === undefined || change.allows === request.accepted) return []
    const isExplained = ofTarget
      .slice(last + 1)
      .some(({ startedAt, allows }) => startedAt < request.endedAt && allows === request.accepted)
    return isExplained ? [] : [{ request, change }]
  })
  return [...Map.groupBy(contradictions, ({ change }) => change)].flatMap(([change, found]) =>
    change.admits === undefined ? found : findExcess(found, change, change.admits),
  )
}

/**
 * The requests that a rate does not cover. All of them began after the change was acknowledged, so a node has accepted
 * nothing more of them than `atOnce` and what it earned until the last one ended.
 */
function findExcess(accepted: Violation[], { endedAt }: ChangeEvent, { atOnce, perMinute }: Rate): Violation[] {
  return [...Map.groupBy(accepted, ({ request }) => request.node).values()].flatMap((ofNode) =>
    ofNode
      .toSorted((one, other) => one.request.endedAt - other.request.endedAt)
      .filter(({ request }, index) => index + 1 > atOnce + ((request.endedAt - endedAt) / 60_000) * perMinute),
  )
}
