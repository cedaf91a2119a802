// Translates a failed fetch into a cause and a remedy. Bun sets an error code; Deno has it only in the message, which
// can quote the address, so no pattern here matches a host name.

type Failure = { is: RegExp; cause: string; causeWithCa?: string }

const failures: Failure[] = [
  {
    is: /ALTNAME|NotValidForName/,
    cause:
      'its certificate is for another host name: use that name, or, behind a proxy with its own CA, --ca-file FILE',
  },
  { is: /CERT_HAS_EXPIRED|invalid peer certificate: Expired/, cause: 'its certificate has expired' },
  { is: /CERT_NOT_YET_VALID|NotValidYet/, cause: 'its certificate is not valid yet: check the clocks' },
  {
    is: /CERT_|_CERT|UNABLE_TO_VERIFY|INVALID_CA|invalid peer certificate|self.signed certificate|unable to verify the first/,
    cause: 'no public authority has signed its certificate: name the one that did with --ca-file FILE',
    causeWithCa: 'the given authority has not signed its certificate: name the one that did with --ca-file FILE',
  },
  { is: /ENOTFOUND|EAI_AGAIN|dns error|lookup address/, cause: 'its name cannot be resolved' },
  { is: /ECONNREFUSED|ConnectionRefused|Connection refused/, cause: 'nothing listens there' },
  { is: /EPROTO|TLS handshake|InvalidContentType/, cause: 'it does not speak TLS there' },
  {
    is: /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|FailedToOpenSocket|Unable to connect|Connect\)/,
    cause: 'it cannot be reached',
  },
  {
    is: /ECONNRESET|ConnectionClosed|EPIPE|connection closed|Connection reset/,
    cause: 'the connection was closed early',
  },
]

/**
 * Returns the `cause` for an admin and the runtime's `code` for the log. `hasCa` is whether a private CA was trusted.
 */
export function describeFetchFailure(error: unknown, hasCa: boolean): { cause: string; code: string } {
  const text = textOf(error)
  const found = failures.find(({ is }) => is.test(text))
  const { code, message } = error as { code?: unknown; message?: unknown }
  return {
    cause: (hasCa ? found?.causeWithCa : undefined) ?? found?.cause ?? 'the connection failed',
    code: String(code ?? message ?? error),
  }
}

/** Returns everything that the runtime reports: its code if any, its message and its cause. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as { code?: unknown }
  return [code, error.message, error.cause === undefined ? '' : textOf(error.cause)].join(' ')
}
