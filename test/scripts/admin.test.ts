// `latchkey admin`: a link over the local socket signs in to the admin page; the sessions are listed and ended.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Server } from '../../src/server/server.ts'
import { createCommandRunner } from '../support/command-runner.ts'
import { serveInProcess } from '../support/in-process.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const { env, run, json, failure } = createCommandRunner(folder.path)
let server: Server
beforeAll(async () => {
  await json('init')
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

test('a link is printed, signs in once as the only management key, and its session is listed and ended', async () => {
  expect(await failure('admin', 'open')).toMatchObject({ code: 1, error: { code: 'conflict' } })
  server = await serveInProcess(env)
  const origin = new URL(server.baseUrl).origin
  const { stdout } = await run('admin', 'open', '--read-only')
  const [, url = '', token = ''] =
    /^(\S+)#link=([\w-]{43})\n {2}signs in once as first management key, until /.exec(stdout) ?? []
  expect(url).toBe(`${origin}/admin/`)
  const signIn = () =>
    fetch(`${server.baseUrl}/admin/session`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', origin, 'content-type': 'application/json' },
      body: JSON.stringify({ link: token }),
    })
  expect((await signIn()).status).toBe(200)
  expect((await signIn()).status).toBe(401)
  const { data } = (await json('admin', 'sessions')) as unknown as { data: { id: string }[] }
  expect(data).toMatchObject([{ key_name: 'first management key', read_only: true, opened_by: expect.any(String) }])
  const [session] = data
  expect(await json('admin', 'end', session?.id ?? '')).toEqual({ id: session?.id, ended: true })
  expect((await run('admin', 'sessions')).stdout).toBe('No sessions\n')
})
