// A document is applied as a whole or not at all, also when the server is killed at a random moment while it applies one.
import { afterAll, beforeAll, expect } from 'bun:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createChance, killsOr } from '../support/chance.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install } from '../support/installation.ts'

const chance = createChance('config-crash')

const rounds = killsOr(4)
const policiesPerRound = 60

let installation: Installation
beforeAll(async () => {
  installation = await install()
})
afterAll(() => installation.remove())

function documentOf(round: number) {
  const keys = [{ name: `key-${round}` }]
  const issuers = [{ name: `idp-${round}`, issuer_url: `https://idp-${round}.example.com` }]
  const policies = Array.from({ length: policiesPerRound }, (_, index) => ({
    ...{ name: `policy-${round}-${index}`, issuer: `idp-${round}`, key: `key-${round}` },
    ...{ audience: 'a', subject: `subject-${index}` },
  }))
  return { latchkey: 1, owner: 'us', issuers, keys, policies }
}

/** The rows of a round: issuer, key, policies, and the records of all these and of the document. */
function countRows(round: number): number[] {
  const [found] = readDatabaseFile(
    installation.databasePath,
    `select (select count(*) from issuers where name = 'idp-${round}') as issuers,
      (select count(*) from api_keys where name = 'key-${round}') as keys,
      (select count(*) from policies where name like 'policy-${round}-%') as policies,
      (select count(*) from admin_changes where group_id in (
        select group_id from admin_changes where json_extract(after, '$.name') = 'idp-${round}')) as records`,
  )
  return Object.values(found?.[0] ?? {}).map(Number)
}

onFile('local socket').test(
  `after each of ${rounds} kills, a document is there as a whole or not at all`,
  async () => {
    const whole = [1, 1, policiesPerRound, policiesPerRound + 3]
    let serving = await installation.serve()
    const started = performance.now()
    await serving.ask('config.apply', { document: documentOf(rounds) })
    // A killed change may be at any point between its arrival and its acknowledgment.
    const milliseconds = performance.now() - started
    for (let round = 0; round < rounds; round++) {
      const applied = serving.ask('config.apply', { document: documentOf(round) }).then(
        () => true,
        () => false,
      )
      await pause(milliseconds * 1.5 * ((round + chance()) / rounds))
      serving.serving.process.kill('SIGKILL')
      const [isAcknowledged] = await Promise.all([applied, serving.serving.process.exited])
      const rows = countRows(round)
      expect(isAcknowledged ? [whole] : [whole, [0, 0, 0, 0]]).toContainEqual(rows)
      serving = await installation.serve()
    }
    await serving.serving.stop()
    expect(countRows(rounds)).toEqual(whole)
  },
  180_000,
)
