// An upstream that responds, but only with failures, is not up: health, metrics and the doctor say so, as fallback treats it.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { metricsText } from '../../src/monitoring/metrics-report.ts'
import { createReadiness } from '../../src/monitoring/readiness.ts'
import { answer, type Inference, startInference, type UsageRow } from '../support/inference.ts'
import { until } from '../support/until.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
afterAll(() => latchkey.stop())

/** What each of them says after one request that the upstream answered with this status. */
async function afterStatus(status: number) {
  latchkey.upstream.answer.current = () => Response.json(status === 200 ? answer : { error: {} }, { status })
  await (await latchkey.complete()).text()
  return report()
}

async function report() {
  const { context } = latchkey.server
  const { degraded } = await createReadiness(context).check()
  const metrics = await metricsText(context)
  const { findings } = await latchkey.admin<{ id: string; findings: { code: string }[] }>('doctor.examine', {})
  return {
    isHealthy: !degraded.includes('upstreams'),
    isUp: metrics.includes('latchkey_upstream_up{upstream="configured"} 1'),
    isFound: findings.some(({ code }) => code === 'upstream_failing' || code === 'upstream_resting'),
  }
}

describe('the upstream', () => {
  for (const status of [500, 502, 503, 504])
    test(`fails when it responds with ${status}`, async () => {
      expect(await afterStatus(status)).toEqual({ isHealthy: false, isUp: false, isFound: true })
    })

  for (const status of [200, 400, 404, 429])
    test(`is up when it responds with ${status}`, async () => {
      expect(await afterStatus(status)).toEqual({ isHealthy: true, isUp: true, isFound: false })
    })
  test('stays up when a client leaves before it has responded', async () => {
    await afterStatus(200)
    const reached = Promise.withResolvers<void>()
    latchkey.upstream.answer.current = (request) => {
      reached.resolve()
      return new Promise((resolve) => request.signal.addEventListener('abort', () => resolve(new Response())))
    }
    const leaving = new AbortController()
    const left = latchkey.complete({ model: 'left' }, {}, leaving.signal).catch(() => 'left')
    await reached.promise
    leaving.abort()
    expect(await left).toBe('left')
    const rows = async () => (await latchkey.admin<{ data: UsageRow[] }>('usage.requests', { limit: 1 })).data
    await until('the row of who left', async () => (await rows())[0]?.status === 499)
    expect(await report()).toEqual({ isHealthy: true, isUp: true, isFound: false })
  })
})
