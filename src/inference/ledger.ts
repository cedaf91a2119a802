// The ledger entry of one inference request: opened when it is let in, written once when it ends. The row is committed before its answer ends.
import type { UsageRow } from '../../db/schema.ts'
import type { Writer } from '../../db/write.ts'
import { describeError, withoutSecrets } from '../fault.ts'
import type { RequestInfo } from '../http/endpoint.ts'
import type { Principal } from '../keys/bearer.ts'
import type { KeyRates } from '../keys/key-rates.ts'
import type { Spending } from '../keys/spending.ts'
import { modelCharactersMax } from '../limits.ts'
import type { Log } from '../observe/log.ts'
import { storableText } from '../values/bytes.ts'
import type { InferenceRequest } from './call.ts'
import { costOf, type PriceList } from './prices.ts'
import type { Attempt } from './upstream/targets.ts'
import type { Inspected } from './usage.ts'

/** How a call ended. `status` is what the caller got; nginx's 499 stands for a client that left before there was one. */
export type Ending = { status: number; completed: boolean; clientLeft: boolean; inspected: Inspected }
export const statusClientLeft = 499
export const nothingSeen: Inspected = { model: undefined, counts: undefined }

/** What these answer is not counted in tokens. */
const withoutCompletion = ['/embeddings', '/rerank']

/** What is asked, and where; `presetVersion` is as `slug@3`. */
type LedgerSubject = Pick<InferenceRequest, 'models' | 'streams'> & { endpoint: string; presetVersion: string | null }

/** What an entry is written with. */
export type LedgerContext = {
  writer: Pick<Writer, 'appendUsage'>
  spending: Spending
  keyRates: KeyRates
  registry: { readonly priceOf: PriceList }
  now: () => number
  log: Log
}

export type LedgerEntry = {
  /** Notes who is asked; the last one is who answered. */
  attempt: (attempt: Attempt) => void
  /** Notes the time of the first byte, the first time it is called. */
  firstByte: () => void
  /** Commits the row, and adds what was spent to the totals of the key. */
  write: (ending: Ending) => Promise<void>
}

export function openLedgerEntry(
  { writer, now, spending, keyRates, registry, log }: LedgerContext,
  { requestId }: RequestInfo,
  { key, accessToken }: Principal,
  { endpoint, presetVersion, models, streams }: LedgerSubject,
): LedgerEntry {
  const startedAt = now()
  let asked: Attempt | undefined
  let firstByteAt: number | undefined

  function costOfAnswer({ model, counts }: Inspected): number | null {
    if (counts === undefined) return null
    if (counts.costNanodollars !== null) return counts.costNanodollars
    const price = [model, asked?.model]
      .map((name) => (name === undefined ? undefined : registry.priceOf(name)))
      .find(Boolean)
    return price === undefined ? null : costOf(price, counts, { generates: !withoutCompletion.includes(endpoint) })
  }

  return {
    attempt: (attempt) => {
      asked = attempt
    },
    firstByte: () => {
      firstByteAt ??= now()
    },
    write: async ({ status, completed, clientLeft, inspected }) => {
      const { model, counts } = inspected
      const row: UsageRow = {
        at: startedAt,
        requestId,
        organizationId: key.organizationId,
        workspaceId: key.workspaceId,
        keyId: key.id,
        policyId: accessToken?.policyId ?? null,
        issuerId: accessToken?.issuerId ?? null,
        subject: storable(accessToken?.subject),
        accessTokenId: accessToken?.id ?? null,
        endpoint,
        model: storable((model ?? asked?.model)?.slice(0, modelCharactersMax)),
        modelAsked: storable(models[0]),
        upstream: asked?.upstream.name ?? null,
        presetVersion,
        status,
        streamed: streams,
        completed,
        clientLeft,
        promptTokens: counts?.promptTokens ?? null,
        completionTokens: counts?.completionTokens ?? null,
        totalTokens: counts?.totalTokens ?? null,
        cachedTokens: counts?.cachedTokens ?? null,
        reasoningTokens: counts?.reasoningTokens ?? null,
        costNanodollars: costOfAnswer(inspected),
        usageSource: counts === undefined ? 'none' : 'upstream',
        // A clock may be set back meanwhile.
        firstByteMilliseconds: firstByteAt === undefined ? null : Math.max(0, firstByteAt - startedAt),
        durationMilliseconds: Math.max(0, now() - startedAt),
      }
      try {
        await writer.appendUsage(row)
      } catch (error) {
        // The upstream has done its work all the same, so that the budget counts it and the log keeps it.
        log('error', 'usage_lost', { ...row, error: describeError(error) })
        throw error
      } finally {
        spending.add(key.id, startedAt, row.costNanodollars ?? 0)
        keyRates.use(key.id, row.totalTokens ?? 0, now())
      }
    },
  }
}

function storable(text: string | undefined): string | null {
  return text === undefined ? null : storableText(withoutSecrets(text))
}
