// The certificate that a TLS server shows, as evidence of where a document came from.
import { isIP } from 'node:net'
import { connect } from 'node:tls'

const millisecondsMax = 5_000

/**
 * Returns the SHA-256 of the certificate of the host of an https URL, in hex. Undefined for other URLs, and if the
 * connection fails or the certificate is not trusted.
 */
export function readCertificateDigest(url: string, caPem: string | null): Promise<string | undefined> {
  const { protocol, hostname, port } = new URL(url)
  if (protocol !== 'https:') return Promise.resolve(undefined)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return new Promise((resolve) => {
    const options = {
      host,
      port: port === '' ? 443 : Number(port),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(caPem === null ? {} : { ca: caPem }),
    }
    const socket = connect(options, () => end(socket.getPeerCertificate().fingerprint256))
    const end = (digest: string | undefined) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(digest?.replaceAll(':', '').toLowerCase())
    }
    const timer = setTimeout(() => end(undefined), millisecondsMax)
    socket.on('error', () => end(undefined))
  })
}
