// A read-only data folder and a full disk: the error is one clear sentence, and no response acknowledges an unsaved
// change.
import { expect } from 'bun:test'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import type { OperationName } from '../../src/admin/operations.ts'
import { askServer } from '../../src/admin/transport/client.ts'
import { socketPathFor } from '../../src/settings/config.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install, trust } from '../support/installation.ts'
import { fromSource, postExchange, runCommand, startTestServer, type TestServer } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const { afterEach, beforeEach, describe, test } = onFile('the file on disk')

let installation: Installation
beforeEach(async () => {
  installation = await install()
})
afterEach(() => installation.remove())

test('a data folder that cannot be created fails with exit code 3', async () => {
  const file = join(installation.folder, 'a-file')
  writeFileSync(file, '')
  const { code, stdout, stderr } = await installation.run('init', '--database-url', `file:${file}/data/latchkey.db`)
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
  expect(stderr).toStartWith(`latchkey: The data folder ${JSON.stringify(`${file}/data`)} cannot be created`)
})

// A limit on file sizes simulates a full disk: writes fail with an error instead of ending the process.
const limitedTo = (blocks: number) => [
  'sh',
  '-c',
  `trap "" XFSZ; ulimit -S -f ${blocks}; exec "$0" "$@"`,
  ...fromSource,
]
const limited = limitedTo(400)

/** Sets many prices in one commit, without a server, on a disk that has no room for a larger database. */
async function importPrices(count: number) {
  const prices = Array.from({ length: count }, (_, index) => ({ model: `model-${index}`, prompt: 1, completion: 2 }))
  const file = join(installation.folder, 'prices.json')
  writeFileSync(file, JSON.stringify(prices))
  const program = limitedTo(Math.ceil(statSync(installation.databasePath).size / 512))
  return runCommand(['prices', 'import', file, '--json'], { cwd: installation.folder, env: installation.env, program })
}

async function listPrices(): Promise<unknown[]> {
  return (JSON.parse((await installation.run('prices', 'list', '--json')).stdout) as { data: unknown[] }).data
}

test('a change that was committed is a success, also where the log finds no room in the database', async () => {
  expect(await importPrices(150)).toMatchObject({ code: 0, stdout: expect.stringContaining('model-149') })
  expect(await listPrices()).toHaveLength(150)
})

test('a change that finds no room fails with a sentence, and is not there', async () => {
  const { code, stdout, stderr } = await importPrices(2_000)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  const [line = ''] = stderr.split('\n')
  expect(JSON.parse(line)).toEqual({
    error: {
      code: 'unavailable',
      message: expect.stringMatching(/ could not be written: .*; the change was not saved/),
    },
  })
  expect(await listPrices()).toEqual([])
})

describe('when the database of a server is full', () => {
  let server: TestServer
  beforeEach(async () => {
    server = await startTestServer()
    await limitPages('page_count')
  })
  afterEach(() => server.stop())

  /** SQLite itself reports a full disk once a database reaches its page limit. */
  async function limitPages(max: 'page_count' | number) {
    const { client } = server.server.context.database
    const pages = max === 'page_count' ? Number((await client.execute('pragma page_count')).rows[0]?.[0]) : max
    await client.execute(`pragma max_page_count = ${pages}`)
  }

  const ask = (name: OperationName, input: object) => askServer(socketPathFor(server.config), name, input)

  async function createUntilRefused(): Promise<{ names: string[]; error: unknown }> {
    for (const names: string[] = []; ; names.push(`key-${names.length}`)) {
      const error = await ask('keys.create', { name: `key-${names.length}` }).then(
        () => undefined,
        (refused: unknown) => refused,
      )
      if (error !== undefined) return { names, error }
    }
  }

  test('a command says so, what was acknowledged is there, and it goes on once there is room', async () => {
    const { names, error } = await createUntilRefused()
    const where = JSON.stringify(server.config.databasePath)
    expect(error).toMatchObject({
      code: 'unavailable',
      message: `The disk that holds the database ${where} is full; the change was not saved: free some space and try again`,
    })
    expect(server.logLines.join('')).toContain('SQLITE_FULL')
    await limitPages(100_000)
    await ask('keys.create', { name: 'after' })
    const { data } = await server.admin<{ data: { name: string }[] }>('keys.list')
    expect(data.map(({ name }) => name).toSorted()).toEqual([...names, 'after', 'first management key'].toSorted())
  })

  test('a caller over HTTP learns nothing of the machine', async () => {
    await limitPages(100_000)
    const { key } = await server.admin<{ key: string }>('keys.create', { name: 'admin', kind: 'management' })
    await limitPages('page_count')
    await createUntilRefused()
    const response = await fetch(`${server.server.baseUrl}/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'one more' }),
    })
    expect(response.status).toBe(500)
    expect(await response.json()).toEqual({
      error: { code: 500, message: 'Internal server error', metadata: { error_type: expect.any(String) } },
    })
  })
})

const prlimit = Bun.which('prlimit')
test.skipIf(prlimit === null)(
  'a full disk makes the server not ready until there is room (needs prlimit)',
  async () => {
    const served = await installation.serve(limited)
    const trusted = await trust(served, await installation.startIssuer())
    const fields = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
    const readyUrl = new URL('/readyz', served.baseUrl)
    expect((await fetch(readyUrl)).status).toBe(200)
    await until('the disk to be full', async () => (await postExchange(served.baseUrl, fields)).status !== 200)
    const full = await fetch(readyUrl)
    const body: unknown = await full.json()
    expect({ status: full.status, body }).toMatchObject({ status: 503, body: { failing: ['writer'] } })
    expect(await installation.run('health')).toMatchObject({ code: 1, stdout: 'not_ready: writer\n' })
    expect((await fetch(new URL('/livez', served.baseUrl))).status).toBe(200)
    Bun.spawnSync([prlimit ?? '', '--pid', String(served.serving.process.pid), '--fsize=unlimited'])
    await until('the server to be ready', async () => (await fetch(readyUrl)).status === 200)
    expect((await postExchange(served.baseUrl, fields)).status).toBe(200)
    expect(await served.serving.stop()).toBe(0)
  },
)

test('when the disk is full exchanges fail, and none that was answered is missing', async () => {
  const served = await installation.serve(limited)
  const trusted = await trust(served, await installation.startIssuer())
  const fields = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
  const issued: unknown[] = []
  let failures = 0
  while (failures < 200) {
    const responses = await Promise.all(Array.from({ length: 4 }, () => postExchange(served.baseUrl, fields)))
    for (const response of responses) {
      const body = (await response.json()) as { access_token?: string; error?: string }
      if (response.status === 200) {
        issued.push(decodeJwt(String(body.access_token)).jti)
        continue
      }
      failures += 1
      // The first ones find the disk full when they commit; the others are refused before.
      expect([500, 503]).toContain(response.status)
      expect(body.error).toBe(response.status === 500 ? 'server_error' : 'temporarily_unavailable')
      expect(body.access_token).toBeUndefined()
    }
  }
  await served.serving.stop('SIGKILL')
  expect(issued.length).toBeGreaterThan(10)

  const [integrity, audits = []] = readDatabaseFile(
    installation.databasePath,
    'pragma integrity_check',
    "select access_token_id as id from exchange_audit where outcome = 'issued' order by id",
  )
  expect(integrity).toEqual([{ integrity_check: 'ok' }])
  const audited = audits.map(({ id }) => id)
  expect(issued.filter((id) => !audited.includes(id as string))).toEqual([])
  expect(new Set(audited).size).toBe(audited.length)

  const again = await installation.serve()
  expect((await postExchange(again.baseUrl, fields)).status).toBe(200)
  expect(await again.serving.stop()).toBe(0)
})
