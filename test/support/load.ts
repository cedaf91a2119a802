// Loads a Latchkey server with many concurrent clients, and records everything that it acknowledged to them.
import { decodeJwt } from 'jose'
import type { OperationName } from '../../src/admin/operations.ts'
import { Fault } from '../../src/fault.ts'
import { createChance } from './chance.ts'
import type { Served, Trust } from './installation.ts'
import { audience, postExchange } from './latchkey.ts'

const chance = createChance('load')

export type Target = Trust & Pick<Served, 'baseUrl' | 'ask'>

/**
 * Each request of three words gets three words back. The client considers it complete when the text ends accordingly.
 */
export const answerKinds = {
  plain: { path: '/chat/completions', streamed: false, end: /\}$/ },
  streamed: { path: '/chat/completions', streamed: true, end: /data: \[DONE\]\n\n$/ },
  response: { path: '/responses', streamed: true, end: /"type":"response\.completed".*\n\n$/ },
  message: { path: '/messages', streamed: true, end: /"type":"message_stop".*\n\n$/ },
} as const
export type AnswerKind = keyof typeof answerKinds

/**
 * `known` is the last acknowledged state. `asked` differs from it during a change, which may or may not be in effect.
 */
export type State = { known: string; asked: string }

/** The complete responses that clients received. Requests with an unknown outcome are not included. */
export type Acknowledged = {
  /** Access tokens by `jti`. */
  tokens: Map<string, string>
  /** Completely received responses by `x-request-id`. */
  answers: Map<string, AnswerKind>
  policies: Map<string, State>
  keys: Map<string, State>
  changes: number
}

export function nothingAcknowledged(): Acknowledged {
  return { tokens: new Map(), answers: new Map(), policies: new Map(), keys: new Map(), changes: 0 }
}

export function countAcknowledged({ tokens, answers, changes }: Acknowledged): number {
  return tokens.size + answers.size + changes
}

/**
 * Keeps clients busy until the server is gone, and resolves when all of them have noticed. `onAnswer` is called for
 * each acknowledged response.
 * @throws if the server returns an unexpected response, or disappears before `isOver`
 */
export async function putLoad(
  target: Target,
  acknowledged: Acknowledged,
  { onAnswer, isOver }: { onAnswer: () => void; isOver: () => boolean },
): Promise<void> {
  async function repeat(act: () => Promise<void>): Promise<void> {
    while (!isOver()) {
      try {
        await act()
        onAnswer()
      } catch (error) {
        if (!isOver() || !isConnectionLost(error)) throw error
      }
    }
  }
  const clients = [
    ...new Array(10).fill(() => exchange(target, acknowledged)),
    ...Array.from({ length: 3 }, () => inferInPairs(target, acknowledged, 'plain')),
    ...Array.from({ length: 3 }, () => inferInPairs(target, acknowledged, 'streamed')),
    inferInPairs(target, acknowledged, 'response'),
    inferInPairs(target, acknowledged, 'message'),
    ...new Array(2).fill(() => changePolicy(target, acknowledged)),
    () => changeKey(target, acknowledged),
  ]
  await Promise.all(clients.map(repeat))
}

function isConnectionLost(error: unknown): boolean {
  if (error instanceof Fault) return error.code === 'unavailable'
  return ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '')
}

async function exchange({ baseUrl, policyId, subjectToken }: Target, { tokens }: Acknowledged): Promise<void> {
  const response = await postExchange(baseUrl, { federation_policy_id: policyId, subject_token: subjectToken })
  const body = (await response.json()) as { access_token?: string }
  if (response.status !== 200 || body.access_token === undefined) throw unexpected(response, body)
  tokens.set(String(decodeJwt(body.access_token).jti), body.access_token)
}

/** Each session has two requests, one after the other: a budget of two for each shows whether the first gave back what it held. */
function inferInPairs(target: Target, acknowledged: Acknowledged, kind: AnswerKind): () => Promise<void> {
  let session: string | undefined
  return () => {
    const first = session
    session = first === undefined ? crypto.randomUUID() : undefined
    return infer(target, acknowledged, kind, first ?? session ?? '')
  }
}

/** Uses an access token if there is one, and the key itself in every other call. */
async function infer(
  { baseUrl, apiKey }: Target,
  { tokens, answers }: Acknowledged,
  kind: AnswerKind,
  session: string,
): Promise<void> {
  const { path, streamed, end } = answerKinds[kind]
  const [token] = answers.size % 2 === 0 ? [...tokens.values()].slice(-1) : []
  const words = 'one two three'
  const response = await fetch(baseUrl + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token ?? apiKey}`,
      'content-type': 'application/json',
      'x-session-id': session,
    },
    body: JSON.stringify({
      model: 'echo',
      stream: streamed,
      ...(path === '/responses' ? { input: words } : { messages: [{ role: 'user', content: words }] }),
    }),
  })
  const text = await response.text()
  if (response.status !== 200 || !end.test(text)) throw unexpected(response, text)
  answers.set(String(response.headers.get('x-request-id')), kind)
}

async function changePolicy(target: Target, acknowledged: Acknowledged): Promise<void> {
  const policy = `policy-${crypto.randomUUID()}`
  const state = { known: 'absent', asked: 'absent' }
  acknowledged.policies.set(policy, state)
  const change = (operation: OperationName, input: object, becomes: string) =>
    changeState(target, acknowledged, state, operation, input, becomes)
  await change('policies.create', { name: policy, issuer: 'idp', key: 'target', audience, subject: policy }, 'enabled')
  await change('policies.pause', { policy }, 'paused')
  if (chance() < 0.5) await change('policies.resume', { policy }, 'enabled')
  if (chance() < 0.3) await change('policies.delete', { policy }, 'absent')
}

async function changeKey(target: Target, acknowledged: Acknowledged): Promise<void> {
  const key = `key-${crypto.randomUUID()}`
  const state = { known: 'absent', asked: 'absent' }
  acknowledged.keys.set(key, state)
  const change = (operation: OperationName, input: object, becomes: string) =>
    changeState(target, acknowledged, state, operation, input, becomes)
  await change('keys.create', { name: key, owner: key }, 'enabled')
  await change('keys.disable', { key }, 'disabled')
  if (chance() < 0.5) await change('keys.enable', { key }, 'enabled')
  if (chance() < 0.3) await change('keys.delete', { key }, 'absent')
}

async function changeState(
  { ask }: Target,
  acknowledged: Acknowledged,
  state: State,
  operation: OperationName,
  input: object,
  becomes: string,
): Promise<void> {
  state.asked = becomes
  await ask(operation, input)
  state.known = becomes
  acknowledged.changes += 1
}

function unexpected({ status }: Response, body: unknown): Error {
  return new Error(`Answered ${status} ${JSON.stringify(body)}`)
}

export type Busy = {
  /**
   * Resolves once each client has completed something that it started after this call.
   * @throws any error of a client
   */
  turn: () => Promise<void>
  stop: () => Promise<void>
}

/** Keeps a number of clients busy. Each repeats its work as soon as it is done. */
export function keepBusy(clients: number, act: (client: number) => Promise<void>): Busy {
  let turn = 0
  let isOver = false
  let passed = Promise.withResolvers<void>()
  const turns = new Array<number>(clients).fill(0)
  async function work(client: number): Promise<void> {
    while (!isOver) {
      const begun = turn
      await act(client)
      turns[client] = begun
      if (turns.every((at) => at === turn)) passed.resolve()
    }
  }
  const working = Promise.all(turns.map((_, client) => work(client))).then(
    () => {},
    (error: unknown) => {
      isOver = true
      throw error
    },
  )
  working.catch(() => {})
  return {
    turn: () => {
      turn += 1
      passed = Promise.withResolvers()
      return Promise.race([passed.promise, working])
    },
    stop: () => {
      isOver = true
      return working
    },
  }
}
