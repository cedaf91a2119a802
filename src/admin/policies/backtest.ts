// Runs an edited policy over the exchanges that the audit has of its issuer, and counts what would change. It changes
// nothing.

import { createPace } from '../../../db/read/pace.ts'
import { readVerified, readVerifiedExchange, type VerifiedExchange } from '../../../db/tables/audit.ts'
import { listSigningKeys } from '../../../db/tables/signing-keys.ts'
import { Fault } from '../../fault.ts'
import { type ClaimHash, createClaimHash } from '../../federation/recording/claim-hash.ts'
import { createRecordJudge, type Judgment, type RecordedExchange } from '../../federation/recording/record-judge.ts'
import type { RecordedClaims } from '../../federation/recording/recorded-claims.ts'
import { isAfterSignature, reasonNames } from '../../federation/subject-token/refusal.ts'
import { openMasterKeyText } from '../../tokens/keyring.ts'
import { type } from '../../values/shape.ts'
import { referenceShape, timeShape } from '../../values/shapes.ts'
import { given, judgedBy } from '../kinds/fields.ts'
import { policyFields } from '../kinds/policy.ts'
import type { Needs } from '../operation/context.ts'
import { findOrganization, findPolicy, organizationInput, timeOf } from '../operation/references.ts'
import { archivedOf } from '../reports/archived.ts'
import { createRowNames } from '../reports/row-names.ts'
import type { backtestResponse } from './backtest-response.ts'
import { checkPolicyFields, policyColumns } from './policy-edit.ts'

const exchangesDefault = 100_000
const exchangesMax = 1_000_000
const sinceDefaultMilliseconds = 30 * 24 * 60 * 60 * 1_000

export const backtestInput = type({
  '+': 'reject',
  ...organizationInput,
  policy: referenceShape,
  ...given(judgedBy('backtest', policyFields), 'change'),
  'since?': timeShape.configure({ says: 'Only exchanges since this time; the default is the last 30 days. ISO 8601' }),
  'limit?': type(`1 <= number.integer <= ${exchangesMax}`).configure({
    says: `The most exchanges to judge, newest first; default ${exchangesDefault}`,
  }),
})

type Response = typeof backtestResponse.infer
type UnjudgedReason = Response['not_judged_because'][number]
type Example = NonNullable<Response['examples']['gained']>
type PastExchange = VerifiedExchange & RecordedExchange

/**
 * Judges each exchange by the saved policy and by the edited one. Other work comes in between. Each back-test takes
 * memory for what it reads, so those of one organization run one after the other.
 * @throws Fault `conflict` when too many wait
 */
export async function backtestPolicy(
  context: Needs<'config' | 'orm' | 'reader' | 'registry' | 'queueReads' | 'now' | 'onProgress'>,
  input: typeof backtestInput.infer,
): Promise<Response> {
  const { id } = findOrganization(context.registry, input.organization)
  const queued = context.queueReads(id, () => {
    // Anyone who asked can be gone by now.
    context.onProgress?.(0, 0)
    return judgePast(context, input, id)
  })
  const rule = 'Several back-tests of this organization already run or wait: try again when they have ended'
  if (queued === undefined) throw new Fault('conflict', rule, { reason: 'backtests_waiting' })
  return queued
}

async function judgePast(
  context: Needs<'config' | 'orm' | 'reader' | 'registry' | 'now' | 'onProgress'>,
  input: typeof backtestInput.infer,
  organizationId: string,
): Promise<Response> {
  const { registry, now } = context
  const policy = findPolicy(registry, input.policy, organizationId)
  const edited = { ...policy, ...policyColumns(input) }
  checkPolicyFields(edited)
  const since = input.since?.getTime() ?? now() - sinceDefaultMilliseconds
  const limit = input.limit ?? exchangesDefault
  let hash: ClaimHash | undefined
  const judgeBefore = createRecordJudge(policy, () => hash)
  const judgeAfter = createRecordJudge(edited, () => hash)
  const tally = createTally(context)
  const pace = createPace()
  const asked = { organizationId, issuerId: policy.issuerId, since, reasons: reasonNames.filter(isAfterSignature) }
  for await (const texts of readVerified(context.reader, asked, context.onProgress)) {
    const wanted = texts.slice(0, limit - tally.exchanges())
    for (const text of wanted) {
      const exchange = toVerified(readVerifiedExchange(text))
      if (exchange.record?.key !== undefined) hash ??= await openHash(context, organizationId)
      tally.count(exchange, judgeBefore(exchange), judgeAfter(exchange))
      const resting = pace()
      if (resting !== undefined) await resting
    }
    if (wanted.length < texts.length) {
      tally.noteMore()
      break
    }
  }
  const counted = await tally.result()
  const issuer_url = registry.issuers.get(policy.issuerId)?.issuerUrl ?? ''
  const reported = { kind: 'exchanges', since, organizationId, isWhole: !counted.is_limited } as const
  return {
    ...{ policy_id: policy.id, policy_name: policy.name, issuer_url, since: timeOf(since) },
    ...counted,
    ...(await archivedOf(context, reported)),
  }
}

function toVerified(exchange: VerifiedExchange): PastExchange {
  const record = exchange.recordedClaims as RecordedClaims | null
  return { ...exchange, tokenId: exchange.subjectTokenId, record }
}

async function openHash({ config, orm }: Needs<'config' | 'orm'>, organizationId: string): Promise<ClaimHash> {
  const { hex } = await openMasterKeyText(config.masterKey, await listSigningKeys(orm))
  return createClaimHash(hex, organizationId)
}

type Counts = Omit<Response, 'policy_id' | 'policy_name' | 'issuer_url' | 'since' | 'archived'>
type Tally = {
  exchanges: () => number
  noteMore: () => void
  count: (exchange: PastExchange, before: Judgment, after: Judgment) => void
  result: () => Promise<Counts>
}

/** Counts judgments, and keeps the newest example of each kind. */
function createTally({ registry }: Needs<'registry'>): Tally {
  const sums = { exchanges: 0, accepted_before: 0, accepted_after: 0, gained: 0, lost: 0, not_judged: 0 }
  const examples = new Map<
    'gained' | 'lost' | 'not_judged',
    { exchange: PastExchange; before: Judgment; after: Judgment }
  >()
  const unknown = new Map<string, UnjudgedReason>()
  let isLimited = false
  const names = createRowNames(registry)
  return {
    exchanges: () => sums.exchanges,
    noteMore: () => {
      isLimited = true
    },
    count: (exchange, before, after) => {
      sums.exchanges += 1
      const kind = kindOf(before, after)
      if (kind === 'not_judged') noteUnknown(unknown, 'unknown' in before ? before : after)
      else {
        if (isAllowed(before)) sums.accepted_before += 1
        if (isAllowed(after)) sums.accepted_after += 1
      }
      if (kind === undefined) return
      sums[kind] += 1
      if (!examples.has(kind)) examples.set(kind, { exchange, before, after })
    },
    result: async () => {
      const shown: Response['examples'] = {}
      for (const [kind, { exchange, before, after }] of examples) {
        const policy = await names.policy(exchange.policyId)
        shown[kind] = {
          ...{ request_id: exchange.requestId, at: timeOf(exchange.at), subject: exchange.subject },
          ...{ policy_name: policy?.name ?? null, before: outcomeOf(before), after: outcomeOf(after) },
        } satisfies Example
      }
      const reasons = [...unknown.values()].toSorted((one, other) => other.exchanges - one.exchanges)
      return { ...sums, not_judged_because: reasons.slice(0, reasonsShown), examples: shown, is_limited: isLimited }
    },
  }
}

const reasonsShown = 10

function kindOf(before: Judgment, after: Judgment): 'gained' | 'lost' | 'not_judged' | undefined {
  if ('unknown' in before || 'unknown' in after) return 'not_judged'
  if (isAllowed(before) === isAllowed(after)) return undefined
  return isAllowed(after) ? 'gained' : 'lost'
}

function isAllowed(judgment: Judgment): boolean {
  return 'outcome' in judgment && judgment.outcome === 'allow'
}

function outcomeOf(judgment: Judgment): string | null {
  return 'outcome' in judgment ? judgment.outcome : null
}

function noteUnknown(all: Map<string, UnjudgedReason>, judgment: Judgment): void {
  if ('outcome' in judgment) return
  const { unknown: because, claim } = judgment
  const name = JSON.stringify([because, claim])
  const known = all.get(name) ?? { because, ...(claim === undefined ? {} : { claim }), exchanges: 0 }
  known.exchanges += 1
  all.set(name, known)
}
