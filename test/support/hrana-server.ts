// A stand-in for a libSQL server: it speaks Hrana pipelines (versions 2 and 3, JSON) over a SQLite file, or the HTTP API of rqlite where
// the environment asks for that kind. It can delay responses and cut connections before or after the work. It runs in a test's own process, or alone so that it can be killed.
// Where the environment names a real server, that does the work (sqld.ts), and this one only delays, cuts and checks the token.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createStreams, type StreamRequest } from './hrana-streams.ts'
import { createRqliteStatements } from './rqlite-statements.ts'
import { isRealRqlite, rqliteFileAt, startRqlite } from './rqlited.ts'
import { databaseFileAt, isRealServer, openSqld } from './sqld.ts'

/** How a request ends without a response: before or after the work. */
export type Cut = 'before' | 'after'

/**
 * What a cluster reports while its leader changes: that it has none, or that it lost it before or after a commit. Nothing was begun
 * only in the first case.
 */
export type Election = 'no leader' | 'lost before' | 'lost after'

/** What the server does to the next requests. */
export type Trouble = {
  /** Added to each request, half before the work and half after it. */
  delayMilliseconds: number
  /** How the next requests end, in order. */
  cuts: Cut[]
  /** How the next commits of nodes end, in order. */
  commitCuts: Cut[]
  /** How the next commits of nodes end at a cluster, in order. */
  elections: Election[]
  /** The next request that contains this text ends without a response, and from then on every request does. */
  awayAt: { text: string; cut: Cut } | undefined
  /** Whether every connection is closed without a response. */
  isPartitioned: boolean
  /** Whether a cluster has changed its members and committed nothing since: reads time out, except those that pass through the log. */
  hasNewMember: boolean
  /** Whether the disk is full: each commit of a node fails, and is not made. */
  isFull: boolean
}

export type HranaServer = {
  url: string
  /** Where tests read the database: a file, or a URL (sqld.ts). */
  file: string
  trouble: Trouble
  /** Pipelines that were executed, and those among them that had a batch. */
  counts: { pipelines: number; batches: number }
  close: () => Promise<void>
}

export type HranaOptions = {
  path: string
  port?: number
  token?: string
  tls?: { cert: string; key: string }
  onCommitCut?: (cut: Cut) => void
  protocol?: Protocol
  /** How safe commits are against a power loss, as SQLite numbers it: 2 is `full`. */
  synchronous?: number
  /** What a node of a cluster reports of itself. */
  status?: object
  /** Whether a cluster enforces foreign keys, and which version it is. */
  hasForeignKeys?: boolean
  version?: string
}

export type Protocol = 'hrana' | 'rqlite'
const protocolOfTests: Protocol = process.env.LATCHKEY_TEST_DATABASE === 'rqlite' ? 'rqlite' : 'hrana'

export async function startHranaServer(options: HranaOptions): Promise<HranaServer> {
  const { path, port = 0, token, tls, onCommitCut, protocol = protocolOfTests, version = 'v10.2.7' } = options
  const trouble: Trouble = {
    delayMilliseconds: 0,
    cuts: [],
    commitCuts: [],
    elections: [],
    awayAt: undefined,
    isPartitioned: false,
    isFull: false,
    hasNewMember: false,
  }
  const counts = { pipelines: 0, batches: 0 }
  const backend = await openBackend(path, protocol, options)

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(request)
    const cut = takeCut(body)
    if (trouble.delayMilliseconds > 0) await pause(trouble.delayMilliseconds / 2)
    if (cut === 'before') return void request.socket.destroy()
    const { status, text } = await respondAs(takeElection(body), request, body)
    if (trouble.delayMilliseconds > 0) await pause(trouble.delayMilliseconds / 2)
    if (cut === 'after') return void request.socket.destroy()
    const headers = {
      'content-type': 'application/json',
      ...(protocol === 'rqlite' && { 'x-rqlite-version': version }),
    }
    response.writeHead(status, headers).end(text)
  }

  function takeCut(body: string): Cut | undefined {
    if (trouble.isPartitioned) return 'before'
    const { awayAt, commitCuts } = trouble
    if (commitCuts.length > 0 && body.includes('insert into batches')) {
      const cut = commitCuts.shift()
      if (cut !== undefined) onCommitCut?.(cut)
      return cut
    }
    if (awayAt === undefined || !body.includes(awayAt.text)) return trouble.cuts.shift()
    trouble.awayAt = undefined
    trouble.isPartitioned = true
    return awayAt.cut
  }

  function takeElection(body: string): Election | undefined {
    return body.includes('insert into batches') ? trouble.elections.shift() : undefined
  }

  async function respondAs(election: Election | undefined, request: IncomingMessage, body: string): Promise<Answer> {
    if (election === 'no leader') return { status: 503, text: 'leader not found\n' }
    if (election === undefined) return respond(request, body)
    if (election === 'lost after') await respond(request, body)
    return { status: 200, text: JSON.stringify({ error: 'leadership lost while committing log' }) }
  }

  async function respond({ method, url = '', headers }: IncomingMessage, body: string): Promise<Answer> {
    if (method === 'GET' && protocol === 'hrana')
      return { status: url === '/v2' || url === '/v3' ? 200 : 404, text: '' }
    const expected = protocol === 'rqlite' ? `Basic ${Buffer.from(token ?? '').toString('base64')}` : `Bearer ${token}`
    if (token !== undefined && headers.authorization !== expected) return unauthorized
    if (method === 'GET' && url.startsWith('/status') && protocol === 'rqlite')
      return { status: 200, text: JSON.stringify(options.status ?? alone) }
    if (method === 'GET' && url.startsWith('/db/backup') && backend.copy !== undefined)
      return { status: 200, text: await backend.copy() }
    if (method !== 'POST' || !isPath(url)) return { status: 404, text: '' }
    counts.pipelines += 1
    if (trouble.hasNewMember && url.includes('level=linearizable')) return timedOut
    trouble.hasNewMember = false
    if (url.startsWith('/db/request') || body.includes('"type":"batch"')) counts.batches += 1
    if (trouble.isFull && body.includes('insert into batches'))
      return { status: 200, text: fullResponse(protocol, body) }
    return backend.run(url, body)
  }

  const listener: RequestListener = (request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error))
    })
  }
  const isPath = (url: string) => (protocol === 'rqlite' ? /^\/db\/(query|request)\?/ : /^\/v[23]\/pipeline$/).test(url)
  const scheme = protocol === 'rqlite' ? 'rqlite' : 'http'
  const server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `${scheme}${tls === undefined ? '' : 's'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    file: protocol === 'rqlite' && isRealRqlite ? rqliteFileAt(path) : databaseFileAt(path),
    trouble,
    counts,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await backend.close()
    },
  }
}

const nothingDone = { cols: [], rows: [], affected_row_count: 0, last_insert_rowid: null }
const full = { message: 'database or disk is full', code: 'SQLITE_FULL' }

/** The error at the first statement after `begin`, as each kind of server reports it. */
function fullResponse(protocol: Protocol, body: string): string {
  if (protocol === 'rqlite') return JSON.stringify({ results: [{ error: full.message }] })
  const { requests } = JSON.parse(body) as { requests: StreamRequest[] }
  const results = requests.map((request) => {
    if (request.type !== 'batch') return { type: 'ok', response: { type: request.type } }
    const { steps } = request.batch
    const result = {
      step_results: steps.map((_, index) => (index === 0 ? nothingDone : null)),
      step_errors: steps.map((_, index) => (index === 1 ? full : null)),
    }
    return { type: 'ok', response: { type: 'batch', result } }
  })
  return JSON.stringify({ baton: null, base_url: null, results })
}

/** The only node of a cluster. */
const alone = statusOf({ id: '1', members: ['1'] })

/** What a node with this id reports of a cluster of these nodes, as rqlite 10 does. */
export function statusOf({ id, members, leader = members[0] ?? '', raft = {} }: Described) {
  const addressOf = (id: string) => `10.0.0.${id}:4002`
  return {
    store: {
      node_id: id,
      addr: addressOf(id),
      dir_size: 4_096,
      leader: { node_id: leader, addr: leader === '' ? '' : addressOf(leader) },
      nodes: members.map((member) => ({ id: member, addr: addressOf(member), suffrage: 'voter' })),
      raft: {
        state: leader === id ? 'Leader' : 'Follower',
        ...{ term: 2, commit_index: 9, applied_index: 9 },
        ...raft,
      },
    },
  }
}

/** The first member leads unless another is named; '' if the node knows no leader. */
type Described = { id: string; members: string[]; leader?: string; raft?: object }

type Answer = { status: number; text: string | Uint8Array }

const timedOut: Answer = { status: 200, text: JSON.stringify({ error: 'timeout waiting for FSM to apply logs' }) }
const unauthorized: Answer = { status: 401, text: JSON.stringify({ error: 'Unauthorized: `The JWT is invalid`' }) }

type Backend = {
  run: (url: string, body: string) => Promise<Answer>
  copy?: () => Promise<Uint8Array>
  close: () => Promise<void>
}

async function openBackend(path: string, protocol: Protocol, options: HranaOptions): Promise<Backend> {
  if (protocol === 'rqlite') {
    if (isRealRqlite) return openRqlite(path)
    const { run, copy, close } = createRqliteStatements(path, options)
    return { run: async (url, body) => run(url, body), copy: async () => copy(), close: async () => close() }
  }
  if (!isRealServer) {
    const streams = createStreams(path, options.synchronous)
    return {
      run: async (_url, body) => {
        const { baton, requests } = JSON.parse(body) as { baton?: string | null; requests: StreamRequest[] }
        const { status, content } = streams.run(baton ?? undefined, requests)
        return { status, text: JSON.stringify(content) }
      },
      close: async () => streams.close(),
    }
  }
  const { url: origin, headers, close } = await openSqld(path)
  const run = async (url: string, body: string) => {
    const response = await fetch(origin + url, { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
  return { run, close }
}

async function openRqlite(path: string): Promise<Backend> {
  const { url: origin, close } = await startRqlite(path)
  const run = async (url: string, body: string) => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(origin + url, { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
  const copy = async () => new Uint8Array(await (await fetch(`${origin}/db/backup`)).arrayBuffer())
  return { run, copy, close }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

if (import.meta.main) {
  // A real server must not outlive it.
  process.once('SIGTERM', () => process.exit())
  const [path = '', port = '0'] = process.argv.slice(2)
  const onCommitCut = (cut: Cut) => process.send?.(cut)
  const { url, trouble } = await startHranaServer({ path, port: Number(port), onCommitCut })
  process.on('message', (message: Partial<Trouble>) => Object.assign(trouble, message))
  process.stdout.write(`${url}\n`)
}
