// Requests the list of models from an upstream, as inference would, and reports what went wrong.
import { listSigningKeys } from '../../../db/tables/signing-keys.ts'
import { describeError, Fault } from '../../fault.ts'
import { describeFetchFailure } from '../../federation/issuer/fetch-failure.ts'
import { modelsIn, readListBody } from '../../inference/models/model-list.ts'
import { createCredentials } from '../../inference/upstream/credentials.ts'
import type { Upstream } from '../../inference/upstream/targets.ts'
import { upstreamCheckMillisecondsMax } from '../../limits.ts'
import { openMasterKey } from '../../tokens/keyring.ts'
import type { Needs } from '../operation/context.ts'

/** Requests the models of an upstream, as an inference request would. */
export async function checkUpstream(
  context: Needs<'config' | 'inEffect' | 'orm' | 'outbound' | 'monotonic' | 'log'>,
  upstream: Upstream,
) {
  const startedAt = performance.now()
  const report = (answer: { ok: boolean; models: number | null; problem: string | null }) => ({
    name: upstream.name,
    base_url: upstream.baseUrl,
    ...answer,
    milliseconds: Math.round(performance.now() - startedAt),
  })
  try {
    const masterKey = await openMasterKey(context.config.masterKey, await listSigningKeys(context.orm))
    const credential = await createCredentials({ ...context, masterKey, fetch: context.outbound.fetch }).of(upstream)
    const response = await context.outbound.fetch(`${upstream.baseUrl}/models`, {
      headers: {
        'accept-encoding': 'identity',
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      },
      redirect: 'manual',
      decompress: false,
      signal: AbortSignal.timeout(upstreamCheckMillisecondsMax),
      ...(upstream.caPem === null ? {} : { ca: upstream.caPem }),
    })
    const problem = problemOf(response)
    if (problem !== undefined) {
      await response.body?.cancel()
      return report({ ok: false, models: null, problem })
    }
    const models = modelsIn(await readListBody(response))
    return models === undefined
      ? report({ ok: false, models: null, problem: 'its response is not a list of models' })
      : report({ ok: true, models: models.length, problem: null })
  } catch (error) {
    return report({ ok: false, models: null, problem: describeProblem(error, upstream.caPem !== null) })
  }
}

/** What this program refused, or why the request failed. */
function describeProblem(error: unknown, hasCa: boolean): string {
  if (error instanceof Fault) return describeError(error)
  if ((error as Error).name === 'TimeoutError')
    return `it did not respond within ${upstreamCheckMillisecondsMax / 1_000} s`
  const { cause, code } = describeFetchFailure(error, hasCa)
  return `${cause} (${code})`
}

function problemOf({ status, headers }: Response): string | undefined {
  if (status === 401 || status === 403) return `it responds with ${status}: check its credential`
  if (status === 404) return 'it responds with 404: its base URL usually ends in /v1'
  if (status !== 200) return `it responds with ${status}`
  const encoding = headers.get('content-encoding') ?? 'identity'
  return encoding === 'identity'
    ? undefined
    : 'its response is encoded, although the request did not accept an encoding'
}
