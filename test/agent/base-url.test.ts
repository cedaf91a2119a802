// Where a workload sends its JWT: over TLS, or to this machine.
import { expect, test } from 'bun:test'
import { checkBaseUrl } from '../../src/agent/exchange.ts'

test('plain HTTP is accepted for this machine', () => {
  for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '[::1]'])
    expect(checkBaseUrl(`http://${host}:8080/v1/`, { allowsHttp: false })).toBe(`http://${host}:8080/v1`)
})

test('plain HTTP is refused for a host that only begins or ends like this machine, and for a private address', () => {
  const hosts = ['localhost.evil.example', '127.0.0.1.evil.example', 'evil-localhost', '10.0.0.1', '[::2]', '128.0.0.1']
  for (const host of hosts)
    expect(() => checkBaseUrl(`http://${host}/v1`, { allowsHttp: false })).toThrow('--url must start with https://')
})
