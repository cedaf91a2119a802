// The audit log of a running server, from an exchange to its proof, and its files over HTTP: the same as in the folder, for management keys
// of the installation alone.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkRowProof } from '../../src/audit-log/row-proof.ts'
import { parseVerifierKey, type VerifierKey } from '../../src/audit-log/transparency/note.ts'
import { type Federation, startFederation, temporaryFolder } from '../support/latchkey.ts'

type Key = { id: string; key: string }

let federation: Federation
let folder: ReturnType<typeof temporaryFolder>
let archives: ReturnType<typeof temporaryFolder>
let reader: Key
let requestId: string
beforeAll(async () => {
  folder = temporaryFolder()
  archives = temporaryFolder()
  federation = await startFederation({ settings: { LATCHKEY_AUDIT_DIR: folder.path } })
  const { mint, exchange, admin } = federation
  const response = await exchange(await mint())
  expect(response.status).toBe(200)
  requestId = response.headers.get('x-request-id') ?? ''
  await exchange('not a token')
  reader = await admin<Key>('keys.create', { name: 'auditor', role: 'auditor' })
  await admin('audit.checkpoint')
})
afterAll(async () => {
  await federation.stop()
  folder.remove()
  archives.remove()
})

const get = (file: string, key = reader.key) =>
  fetch(`${federation.server.baseUrl}/audit/log/${file}`, { headers: { authorization: `Bearer ${key}` } })

test('an exchange has a proof that its verifier key alone checks, and the database fits its log', async () => {
  const { proof } = await federation.admin<{ proof: string }>('audit.prove', { request_id: requestId })
  const { keys } = await federation.admin<{ keys: { verifier_key: string }[] }>('audit.log')
  const found = checkRowProof(proof, parseVerifierKey(keys[0]?.verifier_key ?? '') as VerifierKey)
  expect(found).toMatchObject({ problem: undefined, kind: 'exchange' })
  const row = found.problem === undefined ? JSON.parse(found.row) : {}
  expect(row).toMatchObject({ request_id: requestId, outcome: 'issued', subject: 'workload-1' })
  expect(await federation.admin('audit.verify')).toMatchObject({ ok: true, problems: [] })
})

test('the files of the folder are those that the server sends', async () => {
  const [epoch = ''] = readdirSync(folder.path)
  const within = join(folder.path, epoch)
  const files = readdirSync(within, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
  expect(files.length).toBeGreaterThan(3)
  for (const { parentPath, name } of files) {
    const path = join(parentPath, name)
    const response = await get(path.slice(within.length + 1))
    expect(response.status).toBe(200)
    expect(Buffer.from(await response.arrayBuffer()).equals(readFileSync(path))).toBe(true)
  }
})

test.each(['tile/0/000', 'tile/0/001.p/1', 'tile/1/000.p/1', 'checkpoints/1000', 'key', 'tile/x'])(
  '%s is not there',
  async (file) => {
    expect((await get(file)).status).toBe(404)
  },
)

test('keys of other organizations, inference keys and nobody are refused', async () => {
  const { admin, key } = federation
  await admin('organizations.create', { name: 'other' })
  const stranger = await admin<Key>('keys.create', { name: 'other', kind: 'management', organization: 'other' })
  expect((await get('checkpoint', stranger.key)).status).toBe(403)
  expect((await get('checkpoint', key.key)).status).toBe(403)
  expect((await get('checkpoint', 'sk-none')).status).toBe(401)
})

test('an exchange that moved to an archive has a proof over HTTP, for keys of its organization', async () => {
  const { admin, mint, exchange, server } = federation
  // The newest row of a table stays.
  await exchange(await mint())
  const { data } = await admin<{ data: { rows: number }[] }>('archive.run', {
    ...{ before: new Date().toISOString(), kind: 'exchanges', to: archives.path },
  })
  expect(data).toMatchObject([{ state: 'finished', kind: 'exchanges' }])
  const proofFor = (key: string) =>
    fetch(`${server.baseUrl}/workload-identity/audit/proof?request_id=${requestId}`, {
      headers: { authorization: `Bearer ${key}` },
    })
  const response = await proofFor(reader.key)
  expect(response.status).toBe(200)
  const { data: found } = (await response.json()) as { data: { proof: string } }
  const { keys } = await admin<{ keys: { verifier_key: string }[] }>('audit.log')
  const checked = checkRowProof(found.proof, parseVerifierKey(keys[0]?.verifier_key ?? '') as VerifierKey)
  expect(checked).toMatchObject({ problem: undefined, kind: 'exchange', row: expect.stringContaining(requestId) })
  await admin('organizations.create', { name: 'third' })
  const stranger = await admin<Key>('keys.create', { name: 'third', kind: 'management', organization: 'third' })
  expect((await proofFor(stranger.key)).status).toBe(404)
})
