// A server with TLS: it serves HTTPS, and takes a new certificate by signal, by command and when its files change, but never one that cannot be served.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/observe/log.ts'
import { listen } from '../../src/runtime/listen.ts'
import { readSettingTexts } from '../../src/settings/config.ts'
import { type Installation, install, type Served, trust } from '../support/installation.ts'
import { exchangeFields, runCommand, startTestServer, temporaryFolder } from '../support/latchkey.ts'
import { isServerKind } from '../support/server-kind.ts'
import { type CertificateFiles, hasOpenssl, makeCertificate, presentedName } from '../support/tls.ts'
import { until } from '../support/until.ts'

let folder: ReturnType<typeof temporaryFolder>
let one: CertificateFiles
let two: CertificateFiles
/** What the server reads: the pair that was put there last. */
let inPlace: CertificateFiles
beforeEach(() => {
  folder = temporaryFolder()
  if (!hasOpenssl) return
  one = makeCertificate(folder.path, 'one')
  two = makeCertificate(folder.path, 'two')
  inPlace = { certFile: join(folder.path, 'server.pem'), keyFile: join(folder.path, 'server.key') }
  put(one)
})

function put({ certFile, keyFile }: CertificateFiles): void {
  copyFileSync(certFile, inPlace.certFile)
  copyFileSync(keyFile, inPlace.keyFile)
}

const tlsSettings = () => ({
  LATCHKEY_TLS_CERT_FILE: inPlace.certFile,
  LATCHKEY_TLS_KEY_FILE: inPlace.keyFile,
  LATCHKEY_BASE_URL: '',
})
const trusting = { tls: { rejectUnauthorized: false } }

describe.skipIf(!hasOpenssl)('a server process (needs openssl)', () => {
  let installation: Installation
  let served: Served
  let port: number
  let secureUrl: string
  beforeEach(async () => {
    installation = await install()
    served = await installation.serve(undefined, tlsSettings())
    port = Number(served.serving.facts.listening?.split(':')[1])
    secureUrl = `https://127.0.0.1:${port}/v1`
  })
  afterEach(async () => {
    await served.serving.stop('SIGKILL')
    await installation.remove()
    folder.remove()
  })
  const countLines = (event: string) => served.serving.stderr().split(`"event":"${event}"`).length - 1

  test('exchanges and infers over HTTPS under an https:// base URL', async () => {
    expect(served.serving.facts.base_url).toBe(secureUrl)
    const { policyId, subjectToken } = await trust(served, await installation.startIssuer())
    const body = exchangeFields({ federation_policy_id: policyId, subject_token: subjectToken })
    const exchanged = await fetch(`${secureUrl}/oauth/token`, { method: 'POST', body, ...trusting })
    const { access_token } = (await exchanged.json()) as { access_token: string }
    const completed = await fetch(`${secureUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}` },
      body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] }),
      ...trusting,
    })
    expect(completed.status).toBe(200)
    expect(await served.serving.stop()).toBe(0)
  })

  /** By command, which it returns; by signal where there is no local socket. */
  async function reload(logged: string, count: number) {
    if (!isServerKind) return [await installation.run('reload')]
    served.serving.process.kill('SIGHUP')
    await until(logged, () => countLines(logged) === count)
    return []
  }

  test('takes a new pair by signal and by command, and keeps the old one when the key does not fit', async () => {
    put(two)
    served.serving.process.kill('SIGHUP')
    await until('the new pair', () => countLines('tls_replaced') === 1)
    expect(await presentedName(port)).toBe('two')
    put(one)
    const reloaded = await reload('tls_replaced', 2)
    const stdout = expect.stringMatching(/^Reloaded\nNew TLS certificate, valid until [\d: -]+ UTC\n$/)
    for (const finished of reloaded) expect(finished).toMatchObject({ code: 0, stdout })
    expect(await presentedName(port)).toBe('one')

    copyFileSync(two.keyFile, inPlace.keyFile)
    const refused = await reload('reload_failed', 1)
    const stderr = expect.stringContaining('it is not the key of the certificate')
    for (const finished of refused) expect(finished).toMatchObject({ code: 1, stderr })
    expect(await presentedName(port)).toBe('one')
    // On a server database, the command knows nothing of the files of a node.
    const finding = isServerKind ? '' : 'The TLS files cannot be used'
    expect((await installation.run('doctor')).stdout).toContain(finding)
  })

  test('loses no exchange and no stream while its pair is replaced under load', async () => {
    const { policyId, subjectToken, apiKey } = await trust(served, await installation.startIssuer())
    const fields = { federation_policy_id: policyId, subject_token: subjectToken }
    const exchange = async () => {
      const body = exchangeFields(fields)
      return (await fetch(`${secureUrl}/oauth/token`, { method: 'POST', body, ...trusting })).status
    }
    const stream = async () => {
      const content = 'word '.repeat(50)
      const response = await fetch(`${secureUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ model: 'echo', stream: true, messages: [{ role: 'user', content }] }),
        ...trusting,
      })
      return (await response.text()).endsWith('data: [DONE]\n\n')
    }
    let isOver = false
    const results: (number | boolean)[] = []
    const load = Array.from({ length: 8 }, async (_, index) => {
      while (!isOver) results.push(await (index % 2 === 0 ? exchange() : stream()))
    })
    for (let swap = 1; swap <= 10; swap++) {
      const before = results.length
      put(swap % 2 === 0 ? one : two)
      served.serving.process.kill('SIGHUP')
      await until('the new pair', () => countLines('tls_replaced') === swap)
      await until('the next requests', () => results.length >= before + 20)
    }
    isOver = true
    await Promise.all(load)
    expect(results.filter((result) => result !== 200 && result !== true)).toEqual([])
  })
})

describe.skipIf(!hasOpenssl)('a server (needs openssl)', () => {
  afterEach(() => folder.remove())

  test('takes a pair whose files have changed, and logs once that one cannot be used', async () => {
    const latchkey = await startTestServer({ settings: tlsSettings(), start: { tlsCheckMilliseconds: 5 } })
    const { port } = latchkey.server.address
    const lines = (event: string) => latchkey.logLines.filter((line) => line.includes(`"${event}"`))
    expect(await presentedName(port)).toBe('one')
    writeFileSync(inPlace.certFile, 'half a certificate')
    await until('the failure', () => lines('tls_replacement_failed').length > 0)
    expect(await presentedName(port)).toBe('one')
    put(two)
    await until('the new pair', () => lines('tls_replaced').length > 0)
    expect(await presentedName(port)).toBe('two')
    // One look may have come between the two files.
    expect(lines('tls_replacement_failed').length).toBeLessThan(3)
    await latchkey.stop()
  })

  test('takes a pair when it becomes valid, without another change of its files', async () => {
    const clock = { now: Date.now() }
    const dependencies = { now: () => clock.now }
    const latchkey = await startTestServer({
      settings: tlsSettings(),
      dependencies,
      start: { tlsCheckMilliseconds: 5 },
    })
    const { port } = latchkey.server.address
    const failures = () => latchkey.logLines.filter((line) => line.includes('"tls_replacement_failed"'))
    clock.now -= 60 * 60 * 1_000
    put(two)
    await until('the failure', () => failures().some((line) => line.includes('is not valid before')))
    const examine = async () => {
      const { findings } = await latchkey.admin<{ findings: { code: string }[] }>('doctor.examine')
      return findings.map(({ code }) => code)
    }
    expect(await examine()).toContain('tls_files_unusable')
    clock.now += 60 * 60 * 1_000
    await until('the new pair', async () => (await presentedName(port)) === 'two')
    expect(await examine()).not.toContain('tls_files_unusable')
    // One look may have come between the two files.
    expect(failures().length).toBeLessThan(3)
    await latchkey.stop()
  })

  test('that fails to start no longer looks at the files', async () => {
    const taken = await listen({ hostname: '127.0.0.1', port: 0 }, async () => new Response())
    const logLines: string[] = []
    const dependencies = { log: createLog((line) => logLines.push(line)) }
    const settings = { ...tlsSettings(), LATCHKEY_METRICS_LISTEN: `127.0.0.1:${taken.port}` }
    const failed = startTestServer({ settings, dependencies, start: { tlsCheckMilliseconds: 1 } })
    await expect(failed).rejects.toThrow('the address is in use')
    writeFileSync(inPlace.certFile, 'half a certificate')
    // As many looks as would have found the change.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(logLines.filter((line) => line.includes('tls_replacement_failed'))).toEqual([])
    await taken.drain()
  })

  test('cannot turn TLS on or off without a restart', async () => {
    const on = { LATCHKEY_TLS_CERT_FILE: inPlace.certFile, LATCHKEY_TLS_KEY_FILE: inPlace.keyFile }
    const textsOf = (flags: Record<string, string>) => readSettingTexts({ flags, environment: {} })
    for (const [before, after] of [
      [on, {}],
      [{}, on],
    ]) {
      const settings = { texts: textsOf(before ?? {}), reread: () => textsOf(after ?? {}) }
      const latchkey = await startTestServer({ settings: before, start: { settings } })
      expect(latchkey.server.reload?.()).toMatchObject({
        changed: [],
        needs_restart: ['LATCHKEY_TLS_CERT_FILE', 'LATCHKEY_TLS_KEY_FILE'],
      })
      await latchkey.stop()
    }
  })

  test('does not start with a pair that cannot be served: exit code 3 and the reason', async () => {
    copyFileSync(two.keyFile, inPlace.keyFile)
    const env = { LATCHKEY_DATABASE_URL: `file:${join(folder.path, 'latchkey.db')}`, ...tlsSettings() }
    await runCommand(['init'], { cwd: folder.path, env })
    const { code, stderr } = await runCommand(['serve', '--listen', '127.0.0.1:0'], { cwd: folder.path, env })
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('not the key of the certificate') })
  })
})
