// An issuer that is edited or deleted while its keys are fetched: what arrives late belongs to the old one, and is not kept for the new.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { rowsInFile } from '../../support/database-file.ts'
import { keySetReply } from '../../support/issuer-server.ts'
import { type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'
import { createKeyPair, type KeyPair } from '../../support/subject-token.ts'

const keysUrl = 'https://idp.example.com/keys'
const pair: KeyPair = await createKeyPair('ES256', 'es')

let served: TestServer
let issuer: Row
let asked: PromiseWithResolvers<void>
let answer: PromiseWithResolvers<Response>
beforeEach(async () => {
  asked = Promise.withResolvers()
  answer = Promise.withResolvers()
  const fetch = () => {
    asked.resolve()
    return answer.promise
  }
  served = await startTestServer({ dependencies: { fetch, resolve: async () => [] } })
  issuer = await served.admin('issuers.add', {
    name: 'idp',
    issuer_url: 'https://idp.example.com',
    jwks_url: keysUrl,
  })
})
afterEach(() => served.stop())

const keptSets = () => rowsInFile(served.config.databasePath, 'select source from issuer_key_sets')

test('the set of an issuer that stays as it is is kept', async () => {
  const refreshed = served.admin<Row & { keys: object[] }>('issuers.refresh', { issuer: 'idp' })
  await asked.promise
  answer.resolve(keySetReply([pair]))
  expect((await refreshed).keys).toEqual([{ kid: 'es', algorithm: 'ES256' }])
  expect(keptSets()).toEqual([{ source: keysUrl }])
})

describe('nothing is kept of a set that arrives after', () => {
  const changes = [
    ['another key set URL', (id: string) => served.admin('issuers.update', { issuer: id, jwks_url: `${keysUrl}/new` })],
    ['another name', (id: string) => served.admin('issuers.update', { issuer: id, name: 'renamed' })],
    ['a pasted set', (id: string) => served.admin('issuers.update', { issuer: id, jwks: { keys: [pair.publicJwk] } })],
    ['the end of the issuer', (id: string) => served.admin('issuers.delete', { issuer: id })],
  ] as const
  for (const [name, change] of changes)
    test(name, async () => {
      const refreshed = served.admin('issuers.refresh', { issuer: 'idp' }).catch((error: Error) => error)
      await asked.promise
      await change(issuer.id)
      answer.resolve(keySetReply([pair]))
      await refreshed
      expect(keptSets()).toEqual([])
    })
})
