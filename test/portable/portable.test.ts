// The same scenarios on Bun, in this process, and on Deno, in a child process.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Federation, startFederation } from '../support/latchkey.ts'
import { startRecordingProxy } from '../support/recording-proxy.ts'
import { scenarios } from './scenarios.ts'

describe('on Bun', () => {
  let federation: Federation
  beforeAll(async () => {
    federation = await startFederation()
  })
  afterAll(() => federation.stop())
  for (const { name, run } of scenarios) test(name, () => run(federation))
})

describe('on Deno', () => {
  const errors = new Map<string, string | null>()
  let output = ''
  let proxied: string[] = []
  beforeAll(async () => {
    const proxy = await startRecordingProxy()
    const deno = join(import.meta.dirname, '../../node_modules/.bin/deno')
    const flags = [
      'run',
      '--allow-all',
      '--no-prompt',
      '--node-modules-dir=manual',
      '--unstable-raw-imports',
      '--no-lock',
    ]
    const child = Bun.spawn([deno, ...flags, join(import.meta.dirname, 'on-deno.ts')], {
      env: { ...process.env, ...proxy.env, DENO_NO_UPDATE_CHECK: '1', LATCHKEY_TEST_BUN: process.execPath },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    output = stdout + stderr
    proxied = proxy.seen
    proxy.stop()
    for (const line of stdout.split('\n')) {
      if (!line.startsWith('{"name"')) continue
      const { name, error } = JSON.parse(line) as { name: string; error: string | null }
      errors.set(name, error)
    }
    // The first run may check and cache every module.
  }, 120_000)
  test('a proxy in the environment sees none of the requests to this machine', () => {
    expect(proxied).toEqual([])
  })
  for (const { name } of scenarios) {
    test(name, () => {
      expect(errors.has(name) ? errors.get(name) : `It did not run: ${output}`).toBeNull()
    })
  }
})
