// What a failed fetch means, in our words and with what to do. Bun sets a code; Deno has it only in the message, which may quote the address:
// no pattern here matches a host name.

type Failure = { is: RegExp; told: string; toldWithCa?: string }

const failures: Failure[] = [
  {
    is: /ALTNAME|NotValidForName/,
    told: 'its certificate is for another host name: use that name, or, behind a proxy with its own CA, --ca-file FILE',
  },
  { is: /CERT_HAS_EXPIRED|invalid peer certificate: Expired/, told: 'its certificate has expired' },
  { is: /CERT_NOT_YET_VALID|NotValidYet/, told: 'its certificate is not valid yet: check the clocks' },
  {
    is: /CERT_|_CERT|UNABLE_TO_VERIFY|INVALID_CA|invalid peer certificate|self.signed certificate|unable to verify the first/,
    told: 'no public authority has signed its certificate: name the one that did with --ca-file FILE',
    toldWithCa: 'the given authority has not signed its certificate: name the one that did with --ca-file FILE',
  },
  { is: /ENOTFOUND|EAI_AGAIN|dns error|lookup address/, told: 'its name cannot be resolved' },
  { is: /ECONNREFUSED|ConnectionRefused|Connection refused/, told: 'nothing listens there' },
  { is: /EPROTO|TLS handshake|InvalidContentType/, told: 'it does not speak TLS there' },
  {
    is: /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket|Unable to connect|Connect\)/,
    told: 'it cannot be reached',
  },
  {
    is: /ECONNRESET|ConnectionClosed|EPIPE|connection closed|Connection reset/,
    told: 'the connection was closed early',
  },
]

/** `told` is the cause for an admin; `code` is the runtime's name of it, for the log. `hasCa`: a private CA was trusted. */
export function describeFetchFailure(error: unknown, hasCa: boolean): { told: string; code: string } {
  const text = textOf(error)
  const found = failures.find(({ is }) => is.test(text))
  const { code, message } = error as { code?: unknown; message?: unknown }
  return {
    told: (hasCa ? found?.toldWithCa : undefined) ?? found?.told ?? 'the connection failed',
    code: String(code ?? message ?? error),
  }
}

/** Everything the runtime reports: its code if any, its message, and its cause. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as { code?: unknown }
  return [code, error.message, error.cause === undefined ? '' : textOf(error.cause)].join(' ')
}
