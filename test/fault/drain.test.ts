// A stop signal shuts the server down gracefully: it finishes and commits running work, then exits with code 0.
import { afterEach, expect, test } from 'bun:test'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import type { Handler } from '../../src/runtime/listener.ts'
import { rowsInFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { deltaOf, eventOf, finishOf, usageEvent } from '../support/inference.ts'
import { type Installation, install, type Served, trust } from '../support/installation.ts'
import { postExchange, upstreamApiKey } from '../support/latchkey.ts'
import { letNotice, openRawRequest } from '../support/raw-request.ts'
import { isServerKind } from '../support/server-kind.ts'
import { until } from '../support/until.ts'

let installation: Installation
let served: Served
afterEach(async () => {
  await served.serving.stop('SIGKILL')
  await installation.remove()
})

/** A handler that reports when it is asked for a path and goes on when it is let go. */
function hold(path: string) {
  const asked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const around = (handler: Handler): Handler => {
    return async (request, peer) => {
      if (new URL(request.url).pathname.endsWith(path)) {
        asked.resolve()
        await gate.promise
      }
      return handler(request, peer)
    }
  }
  return { around, asked: asked.promise, release: gate.resolve }
}

/** Sends the signal and resolves once the server accepts no new connections. */
async function signalStop({ serving, baseUrl }: Served): Promise<void> {
  serving.process.kill('SIGTERM')
  for (;;) {
    // A new connection each time: one that is open already may be served until the end.
    const isRefused = await fetch(`${baseUrl}/oauth/jwks`, { headers: { connection: 'close' }, keepalive: false })
      .then(() => false)
      .catch(() => true)
    if (isRefused) return
  }
}

/** Starts a server and signals it to stop while an exchange waits for the keys of its issuer. */
async function stopDuringExchange() {
  installation = await install()
  served = await installation.serve()
  const held = hold('/jwks')
  const trusted = await trust(served, await installation.startIssuer(held.around))
  const fields = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
  const exchange = postExchange(served.baseUrl, fields)
  await held.asked
  await signalStop(served)
  return { held, exchange }
}

onFile('local socket').test('a server that finishes its requests reports that it is stopping', async () => {
  const { held, exchange } = await stopDuringExchange()
  const stopping = { code: 1, stdout: 'not_ready: stopping\n', stderr: '' }
  expect(await installation.run('health')).toEqual(stopping)
  held.release()
  expect((await exchange).status).toBe(200)
  expect(await served.serving.process.exited).toBe(0)
  expect(await installation.run('health')).toMatchObject({ code: 1, stdout: expect.stringMatching(/^unreachable: /) })
})

onFile('local socket').test('a server that is stopping refuses to reload its settings', async () => {
  const { held, exchange } = await stopDuringExchange()
  expect(await installation.run('reload')).toMatchObject({ code: 1, stderr: expect.stringContaining('it is stopping') })
  held.release()
  expect((await exchange).status).toBe(200)
  expect(await served.serving.process.exited).toBe(0)
  expect(served.serving.stderr()).not.toContain('"reloaded"')
})

test('metrics stop together with the service, not after its last request', async () => {
  installation = await install()
  served = await installation.serve(undefined, { LATCHKEY_METRICS_LISTEN: '127.0.0.1:0' })
  const metricsUrl = served.serving.facts.metrics ?? ''
  expect((await fetch(metricsUrl)).status).toBe(200)
  const held = hold('/jwks')
  const trusted = await trust(served, await installation.startIssuer(held.around))
  const fields = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
  const exchange = postExchange(served.baseUrl, fields)
  await held.asked
  await signalStop(served)
  await until('metrics to stop', () =>
    fetch(metricsUrl, { keepalive: false }).then(
      () => false,
      () => true,
    ),
  )
  held.release()
  expect((await exchange).status).toBe(200)
  expect(await served.serving.process.exited).toBe(0)
})

test('an exchange under way is finished and in the audit', async () => {
  installation = await install()
  served = await installation.serve()
  const held = hold('/jwks')
  const { policyId, subjectToken } = await trust(served, await installation.startIssuer(held.around))
  const answer = postExchange(served.baseUrl, { federation_policy_id: policyId, subject_token: subjectToken })
  await held.asked
  await signalStop(served)
  expect(served.serving.process.exitCode).toBeNull()
  held.release()

  const response = await answer
  expect(response.status).toBe(200)
  expect(await served.serving.process.exited).toBe(0)
  expect(rowsInFile(installation.databasePath, 'select outcome, request_id from exchange_audit')).toEqual([
    { outcome: 'issued', request_id: response.headers.get('x-request-id') },
  ])
})

test('a stream under way goes on to its end and is in the usage', async () => {
  const gate = Promise.withResolvers<void>()
  const echo = createEchoUpstream(upstreamApiKey)
  installation = await install(async (request, peer) => {
    const { body, headers } = await echo(request, peer)
    return new Response(body?.pipeThrough(pausedAfterFirst(gate.promise)), { headers })
  })
  served = await installation.serve()
  const { apiKey } = await trust(served, await installation.startIssuer())
  const response = await fetch(`${served.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: 'echo', stream: true, messages: [{ role: 'user', content: 'one two three' }] }),
  })
  const reader = response.body?.getReader()
  const first = await reader?.read()
  await signalStop(served)
  expect(served.serving.process.exitCode).toBeNull()
  gate.resolve()

  let text = Buffer.from(first?.value ?? []).toString()
  for (let chunk = await reader?.read(); chunk?.value !== undefined; chunk = await reader?.read())
    text += Buffer.from(chunk.value).toString()
  expect(text).toContain('three')
  expect(text).toEndWith('data: [DONE]\n\n')
  expect(await served.serving.process.exited).toBe(0)
  expect(rowsInFile(installation.databasePath, 'select completed, total_tokens, request_id from usage')).toEqual([
    { completed: 1, total_tokens: 6, request_id: response.headers.get('x-request-id') },
  ])
})

test('a stream that its client left after the last content is read on for its usage, and is in the usage', async () => {
  const gate = Promise.withResolvers<void>()
  installation = await install(async () => {
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        controller.enqueue(Buffer.from(deltaOf('one') + finishOf()))
        await gate.promise
        controller.enqueue(Buffer.from(usageEvent + eventOf('[DONE]')))
        controller.close()
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  })
  served = await installation.serve()
  const { apiKey } = await trust(served, await installation.startIssuer())
  const body = JSON.stringify({ model: 'echo', stream: true, messages: [] })
  const headers = { authorization: `Bearer ${apiKey}`, 'content-length': String(body.length) }
  const { socket, answer } = openRawRequest(`${served.baseUrl}/chat/completions`, 'POST', headers)
  socket.write(body)
  await answer
  socket.destroy()
  await letNotice(served.baseUrl)
  await signalStop(served)
  expect(served.serving.process.exitCode).toBeNull()
  gate.resolve()

  expect(await served.serving.process.exited).toBe(0)
  expect(rowsInFile(installation.databasePath, 'select completed, client_left, total_tokens from usage')).toEqual([
    { completed: 0, client_left: 1, total_tokens: 7 },
  ])
})

test('a server with idle connections ends at once, with its log moved into the file if it has one', async () => {
  installation = await install()
  served = await installation.serve()
  await served.ask('keys.create', { name: 'kept' })
  expect((await fetch(`${served.baseUrl}/oauth/jwks`)).status).toBe(200)
  expect(await served.serving.stop()).toBe(0)
  expect(isServerKind ? 0 : Bun.file(`${installation.databasePath}-wal`).size).toBe(0)
  expect(rowsInFile(installation.databasePath, "select name from api_keys where name = 'kept'")).toHaveLength(1)
})

test('SIGHUP interrupts nothing: the server reads its settings again and keeps serving', async () => {
  installation = await install()
  served = await installation.serve()
  const held = hold('/jwks')
  const { policyId, subjectToken } = await trust(served, await installation.startIssuer(held.around))
  const response = postExchange(served.baseUrl, { federation_policy_id: policyId, subject_token: subjectToken })
  await held.asked
  served.serving.process.kill('SIGHUP')
  await until('a log line or the end', () => {
    return served.serving.stderr().includes('"reloaded"') || served.serving.process.exitCode !== null
  })
  held.release()

  expect((await response).status).toBe(200)
  expect(served.serving.process.signalCode).toBeNull()
  expect(await served.serving.stop()).toBe(0)
})

function pausedAfterFirst(gate: Promise<void>): TransformStream<Uint8Array, Uint8Array> {
  let isFirst = true
  return new TransformStream({
    transform: async (chunk, controller) => {
      if (!isFirst) await gate
      isFirst = false
      controller.enqueue(chunk)
    },
  })
}
