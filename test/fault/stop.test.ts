// "Stop immediately" (reference: Policy lifecycle): an exchange that began before an admin's command but reaches
// minting after it is refused.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Installation, install, type Served, type Trust, trust } from '../support/installation.ts'
import { postExchange } from '../support/latchkey.ts'

let installation: Installation
let served: Served
beforeAll(async () => {
  installation = await install()
  served = await installation.serve()
})
afterAll(async () => {
  await served.serving.stop()
  await installation.remove()
})

type Waiting = { trusted: Trust; answer: Promise<Response>; isAnswered: () => boolean; release: () => void }

/** Starts an exchange in its own organization and resolves once it waits for the issuer's keys. */
async function beginExchange(organization: string): Promise<Waiting> {
  const asked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const issuerUrl = await installation.startIssuer((issuer) => async (request, peer) => {
    if (new URL(request.url).pathname === '/jwks') {
      asked.resolve()
      await gate.promise
    }
    return issuer(request, peer)
  })
  const trusted = await trust(served, issuerUrl, organization)
  let isAnswered = false
  const answer = exchange(trusted).finally(() => {
    isAnswered = true
  })
  await asked.promise
  return { trusted, answer, isAnswered: () => isAnswered, release: gate.resolve }
}

function exchange({ policyId, subjectToken }: Trust): Promise<Response> {
  return postExchange(served.baseUrl, { federation_policy_id: policyId, subject_token: subjectToken })
}

async function reasonsOf(organization: string): Promise<unknown[]> {
  const { data } = await served.ask<{ data: { reason: string | null }[] }>('audit.list', { organization })
  return data.map(({ reason }) => reason)
}

const stops: { command: string[]; reason: string }[] = [
  { command: ['policies', 'disable', 'steady'], reason: 'policy_paused' },
  { command: ['policies', 'delete', 'steady'], reason: 'policy_deleted' },
  { command: ['keys', 'disable', 'target'], reason: 'key_disabled' },
  { command: ['keys', 'delete', 'target'], reason: 'key_deleted' },
  { command: ['issuers', 'delete', 'idp'], reason: 'issuer_deleted' },
]

for (const { command, reason } of stops) {
  const [kind, verb] = command
  test(`once ${kind} ${verb} has returned, no exchange succeeds, nor one that began before`, async () => {
    await expectStop(`${kind} ${verb}`, reason, (organization) => [...command, '--organization', organization])
  })
}

test('once organizations plan free has returned, no exchange succeeds, nor one that began before', async () => {
  await expectStop('downgraded', 'organization_not_entitled', (organization) => [
    'organizations',
    'plan',
    organization,
    'free',
  ])
})

async function expectStop(organization: string, reason: string, command: (organization: string) => string[]) {
  const { trusted, answer, isAnswered, release } = await beginExchange(organization)
  const { code, stderr } = await installation.run(...command(organization))
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(isAnswered()).toBe(false)
  release()
  for (const response of [await answer, await exchange(trusted)]) {
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: 'invalid_grant' })
  }
  expect(await reasonsOf(organization)).toEqual([reason, reason])
}

test('a waiting exchange is judged by an edited policy as it stands at its end', async () => {
  const { answer, isAnswered, release } = await beginExchange('edited')
  const command = ['policies', 'update', 'steady', '--audience', 'another', '--organization', 'edited']
  expect((await installation.run(...command)).code).toBe(0)
  expect(isAnswered()).toBe(false)
  release()
  expect((await answer).status).toBe(400)
  expect(await reasonsOf('edited')).toEqual(['audience_mismatch'])
})

test('a waiting exchange survives a pause that is taken back, and changes that concern others', async () => {
  const { answer, isAnswered, release } = await beginExchange('resumed')
  await served.ask('policies.pause', { organization: 'resumed', policy: 'steady' })
  await served.ask('policies.resume', { organization: 'resumed', policy: 'steady' })
  await served.ask('keys.create', { organization: 'resumed', name: 'another' })
  await served.ask('organizations.create', { name: 'bystander' })
  expect(isAnswered()).toBe(false)
  release()
  expect((await answer).status).toBe(200)
  expect(await reasonsOf('resumed')).toEqual([null])
})
