// What the audit keeps of the claims of a verified token (reference: Recorded claims), as text, and how it is read back.
// It knows no policies and decides nothing.
import { withoutKeysAndTokens } from '../../fault.ts'
import type { JsonObject } from '../../tokens/jwt-text.ts'
import type { ClaimHash } from './claim-hash.ts'

/**
 * `claims` has neither `sub`, which the audit has in a column, nor the values of claims that the token lacks. `absent`
 * names those of them that were looked for. With `complete`, the token has no other claims. `key` names the key of the
 * hashes that `claims` has instead of texts and numbers.
 */
export type RecordedClaims = { claims: JsonObject; absent?: string[]; complete?: true; key?: string }

/** UTF-8 bytes of one record. */
export const recordedClaimsBytesMax = 4_096

/** Always looked for and never hashed. A record without one of these says that the token lacks it. */
export const openClaims: readonly string[] = ['aud', 'scopes', 'token_type']

/** `names`: the claims to record in addition to the open ones, undefined for all. None is `__proto__`. */
export type Recording = { names?: readonly string[] | undefined; hash?: ClaimHash | undefined }

/** Returns the text for the audit, or null if the open claims alone take too many bytes. */
export function recordClaims(payload: JsonObject, recording: Recording): string | null {
  const text = textOf(payload, recording)
  const isShort = text.length * 3 <= recordedClaimsBytesMax || Buffer.byteLength(text) <= recordedClaimsBytesMax
  return isShort && !mayHoldSecret.test(text) ? text : fittingTextOf(payload, recording)
}

/** User and password in a URL; `git` is no secret. GitLab has `//.gitlab-ci.yml@` in a claim, which is no URL. */
const urlWithUser = /:\/\/(?!git@)[^\s/@"]{1,512}@/
const mayHoldSecret = new RegExp(`sk-lk-v1-|eyj|${urlWithUser.source}`, 'i')

function holdsSecret(text: string): boolean {
  return mayHoldSecret.test(text) && (urlWithUser.test(text) || withoutKeysAndTokens(text) !== text)
}

/** One object and one call: writing the text claim by claim takes several times as long. */
function textOf(payload: JsonObject, { names, hash }: Recording): string {
  if (names === undefined) {
    const { sub: _sub, ...claims } = payload
    return JSON.stringify({ claims, complete: true } satisfies RecordedClaims)
  }
  const claims: JsonObject = {}
  const absent: string[] = []
  for (const name of openClaims) if (Object.hasOwn(payload, name)) claims[name] = payload[name]
  for (const name of names)
    if (!Object.hasOwn(payload, name)) absent.push(name)
    else claims[name] = hash === undefined ? payload[name] : hash.hide(payload[name])
  const record: RecordedClaims = absent.length === 0 ? { claims } : { claims, absent }
  return JSON.stringify(hash === undefined ? record : { ...record, key: hash.key })
}

/** Leaves out claims that hold a credential, and those that do not fit. Nothing says then that the token lacks them. */
function fittingTextOf(payload: JsonObject, recording: Recording): string | null {
  const { names = namesIn(payload), hash } = recording
  const members: string[] = []
  const absent: string[] = []
  let bytesLeft = recordedClaimsBytesMax - Buffer.byteLength(`{"claims":{}${endOf('""', recording, true)}`)
  const add = (to: string[], piece: string): boolean => {
    const bytes = Buffer.byteLength(piece) + 1
    if (bytes > bytesLeft || holdsSecret(piece)) return false
    bytesLeft -= bytes
    to.push(piece)
    return true
  }
  for (const name of openClaims)
    if (Object.hasOwn(payload, name) && !add(members, memberOf(name, payload[name]))) return null
  let isComplete = true
  for (const name of names) {
    const isThere = Object.hasOwn(payload, name)
    const value = isThere && hash !== undefined ? hash.hide(payload[name]) : payload[name]
    const isAdded = isThere ? add(members, memberOf(name, value)) : add(absent, JSON.stringify(name))
    isComplete &&= isAdded
  }
  return `{"claims":{${members.join()}}${endOf(absent.join(), recording, isComplete)}`
}

function memberOf(name: string, value: unknown): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`
}

function endOf(absent: string, { names, hash }: Recording, isComplete: boolean): string {
  const complete = names === undefined && isComplete ? ',"complete":true' : ''
  const key = hash === undefined ? '' : `,"key":"${hash.key}"`
  return `${absent === '' ? '' : `,"absent":[${absent}]`}${complete}${key}}`
}

function namesIn(payload: JsonObject): string[] {
  return Object.keys(payload).filter((name) => name !== 'sub' && !openClaims.includes(name))
}

/** Reads what `recordClaims` wrote. */
export function readRecordedClaims(text: string): RecordedClaims {
  return JSON.parse(text) as RecordedClaims
}

/** Reports whether the record says what value a claim has, or that the token lacks it. */
export function isRecorded({ claims, absent, complete }: RecordedClaims, name: string): boolean {
  return (
    name === 'sub' ||
    openClaims.includes(name) ||
    complete === true ||
    Object.hasOwn(claims, name) ||
    absent?.includes(name) === true
  )
}
