// Callers that wait for the same exchange share its outcome; those that come later make another.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type AgentDependencies, findAccessToken, tokenSource } from '../../src/agent/access-token.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ3In0.c2ln'
let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder.remove())

/** A workload with a clock that the test moves, and a server that counts exchanges and answers with what `respond` makes. */
function workload(respond: (exchanges: number) => Response | Promise<Response>) {
  const state = { now: 1_800_000_000_000, exchanges: 0 }
  const environment = { XDG_RUNTIME_DIR: folder.path, JWT: jwt }
  const dependencies: AgentDependencies = {
    platform: {
      environment,
      folder: '/',
      readFile: () => Promise.reject(new Error('no file')),
      run: () => Promise.reject(new Error('no program')),
      findIdToken: () => Promise.reject(new Error('no login')),
      fetchSvid: () => Promise.reject(new Error('no socket')),
      fetch: async () => {
        state.exchanges += 1
        return respond(state.exchanges)
      },
    },
    now: () => state.now,
    userAgent: 'test',
  }
  const options = { url: 'https://llm.example.com/v1/', policy: 'p', allowsHttp: false }
  const source = tokenSource({ ...options, identity: { kind: 'env', name: 'JWT' } })
  return { state, find: (force = false) => findAccessToken(source, { force }, dependencies) }
}

const issued = (seconds: number, name = 'token') =>
  Response.json({ access_token: name, token_type: 'Bearer', expires_in: seconds })

test('a failure is shared by callers that wait, and not by the next', async () => {
  const { state, find } = workload(() => Response.json({ error: 'invalid_grant', request_id: 'r-1' }, { status: 400 }))
  const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => find()))
  expect(outcomes.map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({ reason: { message: 'invalid_grant (request id r-1)', hint: expect.any(String) } })
  expect(state.exchanges).toBe(1)
  state.now += 1
  await expect(find()).rejects.toThrow('invalid_grant')
  expect(state.exchanges).toBe(2)
})

test('a forced token is shared by callers that wait, and one that lives a minute is used by them alone', async () => {
  const { state, find } = workload((exchanges) => issued(60, `token-${exchanges}`))
  const forced = await Promise.all(Array.from({ length: 5 }, () => find(true)))
  expect(forced.map(({ text }) => text)).toEqual(Array(5).fill('token-1'))
  state.now += 1
  expect(await find()).toEqual({ text: 'token-2', issuedAt: state.now, expiresAt: state.now + 60_000 })
})

test('a token is used until two minutes are left, and not before it was issued by the clock', async () => {
  const { state, find } = workload((exchanges) => issued(900, `token-${exchanges}`))
  const start = state.now
  const at = async (seconds: number) => {
    state.now = start + seconds * 1000
    return (await find()).text
  }
  expect([await at(0), await at(780), await at(780.001)]).toEqual(['token-1', 'token-1', 'token-2'])
  expect(await at(-10)).toBe('token-3')
})

test('a failure from before the clock was set back is not shared', async () => {
  const { state, find } = workload((exchanges) =>
    exchanges === 1 ? Response.json({ error: 'invalid_grant' }, { status: 400 }) : issued(900),
  )
  await expect(find()).rejects.toThrow('invalid_grant')
  state.now -= 86_400_000
  expect((await find()).text).toBe('token')
})
