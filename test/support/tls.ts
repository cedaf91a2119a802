// Certificates for tests, made by openssl: self-signed, for 127.0.0.1 and localhost.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { connect } from 'node:tls'

export type CertificateFiles = { certFile: string; keyFile: string }

/** A pair in `folder`, named after its common name, valid from now on for ten days. */
export function makeCertificate(folder: string, name: string): CertificateFiles {
  const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile, '-out', certFile]
  const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  const { status, stderr } = spawnSync('openssl', ['req', '-x509', '-days', '10', ...key, ...names])
  if (status !== 0) throw new Error(stderr.toString())
  return { certFile, keyFile }
}

export const hasOpenssl = spawnSync('openssl', ['version']).status === 0

/** The common name of the certificate that a server presents to a new connection. */
export function presentedName(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const { CN } = socket.getPeerCertificate().subject
      socket.destroy()
      resolve(String(CN))
    })
    socket.on('error', reject)
  })
}
