// nginx in front, configured as the manual says: the audit has the client's address, and neither a path nor an inference server gets
// around what nginx must protect.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { answer, type Inference, startInference } from '../support/inference.ts'
import { type Row, runCommand } from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { hasNginx, type RealPart, startNginx } from '../support/real-parts.ts'

const manual = readFileSync(join(import.meta.dirname, '../../src/manual/operating.md'), 'utf8')
const locationOfManual = /```nginx\n([\s\S]*?)```/.exec(manual)?.[1] ?? ''
/** Elsewhere 127.0.0.2 is not an address of the machine. */
const lacks = process.platform !== 'linux' || !hasNginx || !Bun.which('curl')
const needs = '(needs Linux, nginx and curl)'

let latchkey: Inference
let nginx: RealPart & { folder: string }
let withPorts: Record<'v4' | 'v6', string>
beforeAll(async () => {
  if (lacks) return
  latchkey = await startInference({ LATCHKEY_TRUSTED_PROXIES: '127.0.0.1' })
  const { hostname, port } = latchkey.server.address
  const location = locationOfManual.replace('127.0.0.1:8787', `${hostname}:${port}`)
  const forwarding = (value: string) => location.replace('$proxy_add_x_forwarded_for', `"${value}"`)
  const [v4, v6] = [await freePort(), await freePort()]
  withPorts = { v4: `http://127.0.0.1:${v4}`, v6: `http://[::1]:${v6}` }
  nginx = await startNginx(`
    server { listen 127.0.0.1:{port};
      ${location}
      location /v1/keys { return 403; }
      location /internal/ { internal; alias {folder}/; } }
    server { listen 127.0.0.1:${v4}; ${forwarding('$remote_addr:$remote_port')} }
    server { listen [::1]:${v6}; ${forwarding('[$remote_addr]:$remote_port')} }`)
  writeFileSync(join(nginx.folder, 'secret.txt'), 'internal')
})
afterAll(async () => {
  await nginx?.stop()
  await latchkey?.stop()
})

describe('the audit has the address of the client', () => {
  const rows: [name: string, url: () => string, from: string][] = [
    ['as nginx adds it', () => nginx.url, '127.0.0.2'],
    ['as a proxy writes it with its port', () => withPorts.v4, '127.0.0.2'],
    ['as a proxy writes one of IPv6 with its port', () => withPorts.v6, '::1'],
  ]
  for (const [name, url, from] of rows)
    test.skipIf(lacks)(`${name} ${needs}`, async () => {
      const args = ['-sS', '--interface', from, `${url()}/v1/oauth/token`, '-d', 'grant_type=none']
      const { code, stdout } = await runCommand(args, { cwd: nginx.folder, program: [Bun.which('curl') ?? ''] })
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('unsupported_grant_type') })
      const { data } = await latchkey.admin<{ data: Row[] }>('audit.list', { limit: 1 })
      expect(data).toMatchObject([{ client_address: from }])
    })
})

describe('a path that nginx denies is reached', () => {
  const rows: [target: string, status: number][] = [
    ['/v1/keys', 403],
    ['/v1/chat/../keys', 403],
    ['/v1/chat/%2e%2e/keys', 403],
    ['/v1/%6beys', 403],
    ['/v1//keys', 403],
    ['/v1/chat\\..\\keys', 404],
    ['/v1/chat\\..\\..\\v1\\keys', 404],
    ['/v1/x\\../keys', 404],
    ['/v1/chat%5c..%5ckeys', 404],
  ]
  for (const [target, status] of rows)
    test.skipIf(lacks)(`not by ${target} ${needs}`, async () => {
      const name = `admin ${target.length}`
      const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name, kind: 'management' })
      const headers = { authorization: `Bearer ${key}`, connection: 'close' }
      const { socket, answer: whole } = openRawRequest(nginx.url, 'GET', headers, target)
      expect((await whole).status).toBe(status)
      socket.destroy()
      await latchkey.admin('keys.delete', { key: name })
    })
})

describe('an inference server', () => {
  test.skipIf(lacks)(`cannot make nginx serve a file of its own ${needs}`, async () => {
    const headers = { 'x-accel-redirect': '/internal/secret.txt', 'x-accel-buffering': 'yes' }
    latchkey.upstream.answer.current = () => Response.json(answer, { headers })
    const response = await fetch(`${nginx.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${latchkey.key.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [] }),
    })
    expect([response.status, await response.json()]).toEqual([200, answer])
  })
})
