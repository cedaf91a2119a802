// More concurrent long streams than the runtime's default request limit: all of them reach the upstream, and new
// issuers can still be fetched.
import { expect, test } from 'bun:test'
import { install, trust } from '../support/installation.ts'
import { postExchange } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'

const streams = 400

test(`${streams} streams at once all reach the upstream, and an exchange goes on beside them`, async () => {
  let reached = 0
  const all = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const installation = await install(async () => {
    if (++reached === streams) all.resolve()
    await gate.promise
    return Response.json({})
  })
  const served = await installation.serve()
  const { apiKey, policyId, subjectToken } = await trust(served, await installation.startIssuer())
  const body = JSON.stringify({ model: 'm', messages: [] })
  const headers = { authorization: `Bearer ${apiKey}`, 'content-length': String(body.length) }
  const calls = Array.from({ length: streams }, () => {
    const call = openRawRequest(`${served.baseUrl}/chat/completions`, 'POST', headers)
    call.socket.write(body)
    return call
  })
  await all.promise
  // Its keys must be fetched, which is one more request.
  const exchanged = await postExchange(served.baseUrl, { federation_policy_id: policyId, subject_token: subjectToken })
  expect(exchanged.status).toBe(200)
  gate.resolve()
  for (const { answer, socket } of calls) {
    expect((await answer).status).toBe(200)
    socket.destroy()
  }
  await served.serving.stop()
  await installation.remove()
})
