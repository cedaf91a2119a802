// What a node finds out about a libSQL server: whether a power loss can set it back.
import { afterAll, expect, test } from 'bun:test'
import { connectLibsql } from '../../../../db/remote/libsql/libsql.ts'
import { freePort } from '../../../support/free-port.ts'
import { startHranaServer } from '../../../support/hrana-server.ts'
import { temporaryFolder } from '../../../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const connect = (url: string) =>
  connectLibsql({ url, token: undefined, send: (request, signal) => fetch(request, { signal }) })

const modes: [name: string, synchronous: number, isWeak: boolean][] = [
  ['off', 0, true],
  ['relaxed', 1, true],
  ['strong', 2, false],
  ['extra', 3, false],
]
for (const [name, synchronous, isWeak] of modes)
  test(`the mode ${name} is ${isWeak ? 'a weakness' : 'none'}`, async () => {
    const server = await startHranaServer({ path: `${folder.path}/${name}.db`, protocol: 'hrana', synchronous })
    const { weaknesses, servers, client } = connect(server.url)
    expect((await weaknesses()).map(({ level, what }) => [level, what])).toEqual(
      isWeak ? [['warning', expect.stringContaining('set its durability mode to strong')]] : [],
    )
    expect(await servers()).toEqual([])
    client.close()
    await server.close()
  })

test('a server that does not respond is not called weak', async () => {
  const { weaknesses, client } = connect(`http://127.0.0.1:${await freePort()}`)
  expect(await weaknesses()).toEqual([])
  client.close()
})
