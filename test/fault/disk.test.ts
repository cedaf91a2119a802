// A data folder that cannot be written and a disk that is full: said in a sentence, and nothing is answered that was not kept.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { readDatabaseFile } from '../support/database-file.ts'
import { type Installation, install, trust } from '../support/installation.ts'
import { fromSource, postExchange } from '../support/latchkey.ts'

let installation: Installation
beforeEach(async () => {
  installation = await install()
})
afterEach(() => installation.remove())

test('a data folder that cannot be made is told with exit code 3', async () => {
  const file = join(installation.folder, 'a-file')
  writeFileSync(file, '')
  const { code, stdout, stderr } = await installation.run('init', '--database-url', `file:${file}/data/latchkey.db`)
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
  expect(stderr).toStartWith(`latchkey: The data folder ${JSON.stringify(`${file}/data`)} cannot be made`)
})

// A bound on the size of files stands in for a full disk: writes fail with an error instead of ending the process.
const limited = ['sh', '-c', 'trap "" XFSZ; ulimit -f 400; exec "$0" "$@"', ...fromSource]

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
      expect({ status: response.status, error: body.error }).toEqual({ status: 500, error: 'server_error' })
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
