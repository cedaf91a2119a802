// A change is committed but cannot be loaded. The server must not continue with the state before it, such as a key that
// is now disabled.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { rowsInFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install } from '../support/installation.ts'
import { fromSource, type Row, startTestServer } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

let installation: Installation
beforeAll(async () => {
  installation = await install()
})
afterAll(() => installation.remove())

test('requests fail, and the process is asked to end', async () => {
  const broken: unknown[] = []
  const latchkey = await startTestServer({ dependencies: { onBroken: (error) => void broken.push(error) } })
  const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'app' })
  const { orm, writer } = latchkey.server.context
  const call = () => fetch(`${latchkey.server.baseUrl}/key`, { headers: { authorization: `Bearer ${key}` } })
  expect((await call()).status).toBe(200)

  const { select } = orm
  orm.select = () => {
    throw new Error('disk I/O error')
  }
  await expect(latchkey.admin('keys.disable', { key: 'app' })).rejects.toThrow('The change is saved')
  orm.select = select

  const response = await call()
  expect({ status: response.status, body: await response.json() }).toEqual({
    status: 503,
    body: {
      error: {
        code: 503,
        message: 'The service is stopping; try again later',
        metadata: { error_type: expect.any(String) },
      },
    },
  })
  expect(response.headers.get('retry-after')).toBe('1')
  expect(broken).toHaveLength(1)
  await expect(writer.write([])).rejects.toThrow('could not be loaded')
  expect(latchkey.logLines.filter((line) => line.includes('"database_broken"'))).toEqual([
    expect.stringContaining('The change is saved, but could not be loaded: disk I/O error'),
  ])
  await latchkey.stop()
})

onFile('local socket').test(
  'a server ends with an error and a line in the log, and the change is in the file',
  async () => {
    const [runtime = '', ...main] = fromSource
    const preload = join(import.meta.dirname, '../support/failing-reload.ts')
    await installation.run('keys', 'create', '--name', 'app')
    const { serving, ask } = await installation.serve([runtime, '--preload', preload, ...main])
    await expect(ask('keys.disable', { key: 'app' })).rejects.toThrow('The change is saved')
    expect(await serving.process.exited).toBe(1)
    // Output of the process can arrive after its exit event.
    await until('the line in the log', () => serving.stderr().includes('disk I/O error'), serving.stderr)
    expect(serving.stderr()).toMatch(
      /"database_broken".*The change is saved, but could not be loaded: .*disk I\/O error/,
    )
    expect(rowsInFile(installation.databasePath, "select disabled from api_keys where name = 'app'")).toEqual([
      { disabled: 1 },
    ])
  },
)
