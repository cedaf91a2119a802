// A recorded history of admin changes and requests, and a checker that finds what no order of events can explain.

/** Times are of one clock. The changes of a target are made one after the other; `allows` is the state that one leaves. */
export type ChangeEvent = { target: string; allows: boolean; startedAt: number; endedAt: number; node: number }
export type RequestEvent = { target: string; accepted: boolean; startedAt: number; endedAt: number; node: number }
export type History = { changes: ChangeEvent[]; requests: RequestEvent[] }
export type Violation = { request: RequestEvent; change: ChangeEvent }

/**
 * Lists the requests whose outcome contradicts the last change that was acknowledged before they began, and that no
 * change which ran beside them explains.
 */
export function findViolations({ changes, requests }: History): Violation[] {
  const byTarget = Map.groupBy(changes, ({ target }) => target)
  return requests.flatMap((request) => {
    const ofTarget = byTarget.get(request.target) ?? []
    const last = ofTarget.findLastIndex(({ endedAt }) => endedAt < request.startedAt)
    const known = ofTarget[last]
    if (known === undefined || known.allows === request.accepted) return []
    const isExplained = ofTarget
      .slice(last + 1)
      .some(({ startedAt, allows }) => startedAt < request.endedAt && allows === request.accepted)
    return isExplained ? [] : [{ request, change: known }]
  })
}
