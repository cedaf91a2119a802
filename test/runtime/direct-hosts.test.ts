// Which hosts a proxy never gets to see.
import { expect, test } from 'bun:test'
import { isDirect } from '../../src/runtime/direct-hosts.ts'

test('this machine, its links and metadata services, however they are written', () => {
  const hosts = [
    ...['127.0.0.1', '127.1.2.3', '2130706433', '0x7f.1', '0.0.0.0', '[::1]', '[::]', '[::ffff:127.0.0.1]'],
    ...['localhost', 'LOCALHOST', 'localhost.', 'app.localhost', '169.254.169.254', '169.254.1.1', '[fe80::1]'],
    ...['[::ffff:169.254.169.254]', '[fd00:ec2::254]', 'metadata.google.internal', 'metadata.google.internal.'],
    ...['100.100.100.200', '168.63.129.16'],
  ]
  for (const host of hosts) expect([host, isDirect(`http://${host}:8080/x`)]).toEqual([host, true])
})

test('a host that only resembles one uses the proxy', () => {
  const hosts = [
    ...['10.0.0.1', '128.0.0.1', '169.253.0.1', '100.100.100.201', '0.0.0.1', '[fec0::1]', '[::2]'],
    ...['localhost.example.com', 'notlocalhost', '127.0.0.1.example.com', 'google.internal', '[::ffff:10.0.0.1]'],
  ]
  for (const host of hosts) expect([host, isDirect(`https://${host}/x`)]).toEqual([host, false])
})
