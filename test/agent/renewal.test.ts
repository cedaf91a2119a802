// What happens to a new token that could not be handed over, such as a file on a full disk.
import { expect, test } from 'bun:test'
import { type AgentDependencies, tokenSource } from '../../src/agent/access-token.ts'
import { holdSource } from '../../src/agent/renewal.ts'
import { thisMachine } from '../../src/agent/this-machine.ts'

test('a token that could not be written is written again, before the next renewal', async () => {
  const environment = { JWT: 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ3In0.c2ln' }
  const fetch = async () => Response.json({ access_token: 'token-1', token_type: 'Bearer', expires_in: 900 })
  const dependencies: AgentDependencies = {
    platform: { ...thisMachine, environment, fetch },
    now: Date.now,
    userAgent: 'test',
  }
  const options = { url: 'https://llm.example.com/v1', policy: 'p', allowsHttp: false }
  const source = tokenSource({ ...options, identity: { kind: 'env', name: 'JWT' } })
  const [events, attempts]: [string[], string[]] = [[], []]
  const written = Promise.withResolvers<void>()
  const held = holdSource(source, dependencies, {
    report: (event) => void events.push(event),
    onRenewal: async ({ text }) => {
      attempts.push(text)
      if (attempts.length < 3) throw new Error('the disk is full')
      written.resolve()
    },
    pauseMilliseconds: 1,
  })
  await held.get()
  await written.promise
  expect(attempts).toEqual(['token-1', 'token-1', 'token-1'])
  expect(events).toEqual(['token_renewed', 'write_failed', 'write_failed'])
})
