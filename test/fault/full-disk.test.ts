// A full disk, on a small file system of the server's own: it is not ready, exchanges fail closed, no caller gets a whole response that the
// ledger does not know, and everything resumes once there is room.
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { askServer } from '../../src/admin/transport/client.ts'
import { writeRetryMilliseconds } from '../../src/observe/write-check.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install, type Served, type Trust, trust } from '../support/installation.ts'
import { postExchange, type Row, temporaryFolder, upstreamApiKey } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const { afterEach, test } = onFile('the file on disk')

let installation: Installation
let served: Served
let mountPoint: ReturnType<typeof temporaryFolder>
afterEach(async () => {
  await served.serving.stop('SIGKILL')
  await installation.remove()
  mountPoint.remove()
})

// The mount lives in a namespace of the server, and ends with it.
const inNamespace = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c']
const canMount = spawnSync('unshare', [...inNamespace.slice(1), 'mount -t tmpfs tmpfs /mnt']).status === 0
const megabyte = 1024 * 1024

/** Serves a copy of the installation's data from a file system with room for 6 MB more. */
async function serveOnSmallDisk(): Promise<Served> {
  const from = dirname(installation.databasePath)
  const bytes = statSync(installation.databasePath).size + 6 * megabyte
  const mounted = `mount -t tmpfs -o size=${bytes} tmpfs ${mountPoint.path} && cp -a ${from}/. ${mountPoint.path}/`
  const program = [...inNamespace, `${mounted} && exec "$0" "$@"`, ...compiledProgram()]
  const more = { LATCHKEY_DATABASE_URL: `file:${mountPoint.path}/latchkey.db`, PATH: process.env.PATH ?? '' }
  return installation.serve(program, more)
}

/** A path on the small disk, as a process outside sees it. */
const onDisk = (name: string) => join('/proc', String(served.serving.process.pid), 'root', mountPoint.path, name)

/** Writes a file until nothing fits. */
function fillDisk(): void {
  const file = openSync(onDisk('filler'), 'a')
  let size = megabyte
  while (size > 0) {
    try {
      writeSync(file, Buffer.alloc(size))
    } catch {
      size = Math.floor(size / 2)
    }
  }
  closeSync(file)
}

async function infer({ apiKey }: Trust, stream: boolean): Promise<string> {
  try {
    const response = await fetch(`${served.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: 'echo', stream, messages: [{ role: 'user', content: 'one two three' }] }),
    })
    return `${response.status} ${await response.text()}`
  } catch {
    return 'cut'
  }
}

test.skipIf(!canMount)(
  'a full disk stops what must be recorded, and nothing else, until there is room (needs unshare)',
  async () => {
    mountPoint = temporaryFolder()
    let requestsOfUpstream = 0
    const echo = createEchoUpstream(upstreamApiKey)
    installation = await install((request, peer) => {
      requestsOfUpstream += 1
      return echo(request, peer)
    })
    served = await installation.serve()
    const trusted = await trust(served, await installation.startIssuer())
    expect(await served.serving.stop()).toBe(0)

    served = await serveOnSmallDisk()
    const fields = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
    let issued = 0
    const exchange = async () => {
      const response = await postExchange(served.baseUrl, fields)
      if (response.status === 200) issued += 1
      return response
    }
    const ready = async () => {
      const response = await fetch(new URL('/readyz', served.baseUrl))
      return { status: response.status, body: (await response.json()) as { failing: string[] } }
    }
    expect((await exchange()).status).toBe(200)
    expect(await infer(trusted, false)).toStartWith('200 ')
    expect(await infer(trusted, true)).toEndWith('data: [DONE]\n\n')
    expect((await ready()).status).toBe(200)

    fillDisk()
    // What the log already has room for still fits.
    await until('a refused exchange', async () => (await exchange()).status !== 200)
    await until('the server to be not ready', async () => (await ready()).status === 503)
    // A commit of one row fits now and then: it does not make the server ready, and nothing is sent to the upstream in vain.
    const before = requestsOfUpstream
    truncateSync(onDisk('filler'), statSync(onDisk('filler')).size - 3 * 4_096)
    for (const until = performance.now() + 2.2 * writeRetryMilliseconds; performance.now() < until; ) {
      expect((await ready()).body.failing).toEqual(['writer'])
      const refused = await exchange()
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
      expect(await refused.json()).toMatchObject({ error: 'temporarily_unavailable' })
      for (const stream of [false, true])
        expect(await infer(trusted, stream)).toMatch(/^503 .*"message":"The service is temp/)
    }
    expect(requestsOfUpstream).toBe(before)
    expect((await fetch(new URL('/livez', served.baseUrl))).status).toBe(200)
    expect((await fetch(`${served.baseUrl}/oauth/jwks`)).status).toBe(200)

    rmSync(onDisk('filler'))
    await until('the server to be ready', async () => (await ready()).status === 200)
    expect((await exchange()).status).toBe(200)
    expect(await infer(trusted, true)).toEndWith('data: [DONE]\n\n')
    const audited = await askServer(onDisk(basename(served.socketPath)), 'audit.list', {
      outcome: 'issued',
      limit: 10_000,
    })
    expect((audited?.result as { data: Row[] } | undefined)?.data).toHaveLength(issued)
    expect(await served.serving.stop()).toBe(0)
  },
  60_000,
)
