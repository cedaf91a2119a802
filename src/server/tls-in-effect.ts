// The TLS pair that a server presents: replaced by a reload, and when its files change.

import { describeError, Fault } from '../fault.ts'
import type { Log } from '../observe/log.ts'
import type { SecureListener } from '../runtime/listen.ts'
import type { TlsPair } from '../runtime/listener.ts'
import type { TlsFiles } from '../settings/config.ts'
import type { Validity } from '../values/certificates.ts'
import { type LoadedPair, readTlsPair, stampOf } from './tls-files.ts'

/** Something that was made ready, which may fail, before it is used, which does not. */
export type PreparedUse = { use: () => void; discard: () => void }
export type PreparedPair = PreparedUse & { facts: { replaced: boolean; expires_at: string } }

export type TlsInEffect = {
  /** @throws Fault `configuration` when the pair in these files cannot be used; the one in use stays */
  prepare: (files: TlsFiles) => PreparedPair
  /**
   * Takes the pair from files that have changed, or that could not be used the last time: a certificate becomes valid
   * without a change. Never fails: what is wrong is logged once.
   */
  refresh: () => void
  /** The files of the pair in use. */
  files: () => TlsFiles
  /** The certificate in use, and why newer files could not be used. */
  state: () => Validity & { failure: string | undefined }
}

type Parts = {
  files: TlsFiles
  pair: LoadedPair
  listener: Pick<SecureListener, 'preparePair'>
  databasePath: string
  now: () => number
  log: Log
}

export function createTlsInEffect({ files, pair, listener, databasePath, now, log }: Parts): TlsInEffect {
  let current = { files, pair }
  /** The state of the files that was looked at last, and why they could not be used. */
  let seen = pair.stamp
  let failure: string | undefined
  const read = (from: TlsFiles): PreparedPair => {
    const next = readTlsPair(from, { databasePath, now: now() })
    const isSame = next.cert === current.pair.cert && next.key === current.pair.key
    const ready = isSame ? nothing : prepareOrRefuse(listener, from, next)
    const use = () => {
      ready.use()
      current = { files: from, pair: next }
      seen = next.stamp
      failure = undefined
      if (!isSame) log('info', 'tls_replaced', { subject: next.subject, expires_at: timeOf(next.expiresAt) })
    }
    return { use, discard: ready.discard, facts: { replaced: !isSame, expires_at: timeOf(next.expiresAt) } }
  }
  const prepare = (from: TlsFiles): PreparedPair => {
    try {
      return read(from)
    } catch (error) {
      if (from.certFile === current.files.certFile && from.keyFile === current.files.keyFile)
        failure = describeError(error)
      throw error
    }
  }
  return {
    prepare,
    refresh: () => {
      const stamp = stampOf(current.files)
      if (stamp === seen && failure === undefined) return
      try {
        read(current.files).use()
      } catch (error) {
        const reason = describeError(error)
        if (stamp !== seen || reason !== failure) log('error', 'tls_replacement_failed', { reason })
        seen = stamp
        failure = reason
      }
    },
    files: () => current.files,
    state: () => ({ startsAt: current.pair.startsAt, expiresAt: current.pair.expiresAt, failure }),
  }
}

const nothing: PreparedUse = { use: () => {}, discard: () => {} }

/** The runtime decides whether it can use a pair; it also reads the certificates behind the first. */
function prepareOrRefuse({ preparePair }: Parts['listener'], { certFile }: TlsFiles, pair: TlsPair): PreparedUse {
  try {
    return preparePair(pair)
  } catch (cause) {
    const why = (cause as Error).message
    throw new Fault('configuration', `The certificate in ${JSON.stringify(certFile)} cannot be used: ${why}`, { cause })
  }
}

function timeOf(time: number): string {
  return new Date(time).toISOString()
}
