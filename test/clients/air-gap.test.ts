// The air-gap drill: keys are packed outside from a real identity provider, and imported and used in a network namespace without a route.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onFile } from '../support/file-only.ts'
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts'
import { type Installation, install, type Served } from '../support/installation.ts'
import { exchangeFields, fromSource, type Row, runCommand, temporaryFolder } from '../support/latchkey.ts'

const audience = 'https://llm.example.com'
const outside = temporaryFolder()
const isolate = ['unshare', '--user', '--map-root-user', '--net', 'sh', '-c']
const withLoopback = 'ip link set lo up && exec "$0" "$@"'
const canIsolate =
  spawnSync('unshare', [...isolate.slice(1), 'ip link set lo up && curl --version && nsenter --version']).status === 0

let provider: IdentityProvider
let installation: Installation
let served: Served | undefined
beforeAll(async () => {
  provider = await startIdentityProvider()
  installation = await install()
})
afterAll(async () => {
  await served?.serving.stop('SIGKILL')
  await installation.remove()
  await provider.stop()
  outside.remove()
})

const runOutside = (...args: string[]) =>
  runCommand(args, { cwd: outside.path, env: { LATCHKEY_INSECURE_ISSUERS: 'true' } })
const pack = (...more: string[]) =>
  runOutside(
    'jwks',
    'pack',
    '--issuer-url',
    provider.issuerUrl,
    '--private-key-file',
    'packer.key',
    '--valid',
    '30d',
    ...more,
  )

test('outside, a packer makes a key that only its user can read, and signs the keys of a real provider', async () => {
  expect(await runOutside('jwks', 'keygen', '--out', 'packer.key')).toMatchObject({ code: 0, stderr: '' })
  expect(statSync(join(outside.path, 'packer.key')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(outside.path, 'packer.pub'), 'utf8')).not.toContain('"d"')
  expect(await runOutside('jwks', 'keygen', '--out', 'packer.key')).toMatchObject({ code: 2, stdout: '' })
  expect(await runOutside('jwks', 'keygen', '--out', 'shared.pub')).toMatchObject({ code: 2, stdout: '' })
  expect(existsSync(join(outside.path, 'shared.pub'))).toBe(false)
  expect(await pack('--out', './packer.key')).toMatchObject({ code: 2, stdout: '' })
  const packed = await pack('--out', 'keys.bundle', '--json')
  expect(packed).toMatchObject({ code: 0, stderr: '' })
  const { data } = JSON.parse(packed.stdout) as { data: { keys: { algorithm: string }[] }[] }
  expect(data[0]?.keys.map(({ algorithm }) => algorithm).toSorted()).toEqual(['ES256', 'RS256'])
})

const ownNetwork = onFile('a network without the database server').test
ownNetwork.skipIf(!canIsolate)(
  'inside, without a route, the keys are imported and an exchange succeeds (needs unshare, nsenter, ip and curl)',
  async () => {
    const program = [...isolate, withLoopback, ...fromSource]
    served = await installation.serve(program, { PATH: process.env.PATH ?? '' })
    const { ask } = served
    await ask('keys.create', { name: 'target' })
    await ask('issuers.add', { name: 'idp', issuer_url: provider.issuerUrl })
    const policy = await ask('policies.create', {
      ...{ name: 'ci', issuer: 'idp', key: 'target', audience, subject: 'workload-es256' },
    })
    const token = await provider.getToken('workload-es256', audience)
    expect(exchangeInside(served, policy, token)).toMatchObject({ error: 'temporarily_unavailable' })

    const key: unknown = JSON.parse(readFileSync(join(outside.path, 'packer.pub'), 'utf8'))
    await ask('bundle_signers.add', { name: 'border', key })
    const dry = await installation.run('issuers', 'import', join(outside.path, 'keys.bundle'), '--dry-run')
    expect(dry).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('✓ idp: would be imported') })
    const imported = await installation.run('issuers', 'import', join(outside.path, 'keys.bundle'))
    expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('✓ idp: imported (signed by border') })
    await ask('issuers.update', { issuer: 'idp', bundle_signer: 'border' })
    expect(exchangeInside(served, policy, token)).toMatchObject({ token_type: 'Bearer' })

    const changed = readFileSync(join(outside.path, 'keys.bundle'), 'utf8').replace(/.{8}"\n/, 'AAAAAAAA"\n')
    writeFileSync(join(outside.path, 'changed.bundle'), changed)
    const refused = await installation.run('issuers', 'import', join(outside.path, 'changed.bundle'))
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('refused (bundle_signature_invalid)') })
    expect(exchangeInside(served, policy, token)).toMatchObject({ token_type: 'Bearer' })
  },
  60_000,
)

/** An exchange by curl in the network namespace of the server. */
function exchangeInside({ serving, baseUrl }: Served, { id }: Row, token: string): Record<string, unknown> {
  const body = exchangeFields({ federation_policy_id: id, subject_token: token }).toString()
  const curl = ['curl', '-sS', '--max-time', '20', '--data', body, `${baseUrl}/oauth/token`]
  const enter = ['-t', String(serving.process.pid), '-U', '-n', '--preserve-credentials']
  const { stdout, stderr } = spawnSync('nsenter', [...enter, ...curl], { encoding: 'utf8' })
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout) as Record<string, unknown>
}
