// The inference requests that Latchkey refused itself, before any server got them: counted by key and reason, with the latest of each. They
// are in memory only, since a client that sends too much must not fill a database. Requests that were forwarded are in the ledger.
import type { Fault, FaultSubject } from '../fault.ts'
import type { RequestInfo } from '../http/endpoint.ts'
import { statusOf } from '../http/reply.ts'
import { modelCharactersMax } from '../limits.ts'
import { recordedText } from '../values/recorded-text.ts'

/** One of the latest that were refused. `at` in milliseconds since 1970 UTC. */
export type RefusedSample = { at: number; requestId: string; model: string | null; policyId: string | null }

/** The refusals of a key for a reason. Times in milliseconds since 1970 UTC. */
export type RefusalGroup = {
  readonly organizationId: string
  readonly keyId: string
  readonly status: number
  readonly reason: string
  /** Whose limit refused the latest one. */
  subject: FaultSubject | undefined
  message: string
  lastAt: number
  /** The newest first. */
  samples: RefusedSample[]
}

/** More pairs of a key and a reason push out the one that was refused longest ago. */
const groupsMax = 2_000
const samplesMax = 5
/** A flood is counted, and sampled once in this time. */
const sampleMilliseconds = 1_000
const hourMilliseconds = 3_600_000
const hoursCounted = 24

type CountedGroup = RefusalGroup & { hours: Uint32Array; hour: number }

export type Refusals = {
  /** When counting began. */
  readonly since: number
  /** Counts the fault of a request, if its caller is known and no server got it, unless this server failed. */
  noteFault: (fault: Fault, request: Pick<RequestInfo, 'requestId' | 'unsettled'>, at: number) => void
  /** Those of an organization or all, the latest first, with how many there were in the last 24 hours. */
  list: (organizationId: string | undefined, at: number) => (RefusalGroup & { requests: number })[]
}

/** Counts in this process. A fault costs a few lookups, whatever was counted before. */
export function createRefusals(now: () => number): Refusals {
  const groups = new Map<string, CountedGroup>()
  return {
    since: now(),
    noteFault: (fault, { requestId, unsettled }, at) => {
      const status = statusOf(fault)
      if (unsettled === undefined || status >= 500) return
      const { organizationId, keyId, policyId, model } = unsettled
      const reason = fault.reason ?? fault.code
      const name = `${keyId} ${status} ${reason}`
      const hours = new Uint32Array(hoursCounted)
      const group = groups.get(name) ?? {
        ...{ organizationId, keyId, status, reason, subject: undefined, message: '', lastAt: 0, samples: [] },
        ...{ hours, hour: hourOf(at) },
      }
      // The order of the map is that of the last refusals.
      groups.delete(name)
      groups.set(name, group)
      if (groups.size > groupsMax) groups.delete(groups.keys().next().value ?? '')
      turnTo(group, at)
      const index = group.hour % hoursCounted
      group.hours[index] = (group.hours[index] ?? 0) + 1
      group.message = fault.message
      group.subject = fault.subject
      group.lastAt = at
      const [newest] = group.samples
      if (newest === undefined || Math.abs(at - newest.at) >= sampleMilliseconds)
        group.samples = [{ at, requestId, model: modelText(model), policyId }, ...group.samples].slice(0, samplesMax)
    },
    list: (organizationId, at) =>
      [...groups.values()]
        .filter((group) => (organizationId ?? group.organizationId) === group.organizationId)
        .map((group) => {
          turnTo(group, at)
          const { hours, hour: _hour, ...shown } = group
          return { ...shown, requests: hours.reduce((sum, each) => sum + each, 0) }
        })
        .filter(({ requests }) => requests > 0)
        .toReversed(),
  }
}

/** As the ledger has it. */
const modelText = (model: unknown) =>
  recordedText(typeof model === 'string' ? model.slice(0, modelCharactersMax) : undefined)

const hourOf = (at: number) => Math.floor(at / hourMilliseconds)

/**
 * Forgets the hours that are over. A clock that was set back counts in the hour that it had reached, unless that was far ahead: then nobody
 * knows when the requests before were.
 */
function turnTo(group: CountedGroup, at: number): void {
  const now = hourOf(at)
  if (group.hour - now >= hoursCounted) {
    group.hours.fill(0)
    group.hour = now
  }
  for (let hour = Math.max(group.hour + 1, now - hoursCounted + 1); hour <= now; hour++)
    group.hours[hour % hoursCounted] = 0
  group.hour = Math.max(group.hour, now)
}
