// Signed notes (C2SP signed-note 1.0) and the cosignatures of witnesses (C2SP tlog-cosignature 1.0): text, and lines
// with signatures of keys that its reader knows by their verifier keys. Ed25519 only.
import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto'

/** `log` signs the text as it is; `witness` signs it with a time. */
export type KeyType = 'log' | 'witness'

export type VerifierKey = {
  name: string
  type: KeyType
  /** The first 4 bytes of a hash of the key, in hexadecimal digits. */
  id: string
  publicKey: KeyObject
  /** `<name>+<id>+<base64>`. */
  text: string
}

export type SignerKey = VerifierKey & { privateKey: KeyObject }

export type NoteSignature = {
  name: string
  id: string
  signature: Uint8Array
  /** As in the note, without its newline. */
  line: string
}

export type Note = { text: string; signatures: NoteSignature[] }

const signatureTypes = { log: 1, witness: 4 } as const satisfies Record<KeyType, number>
const publicKeyBytes = 32
const signatureBytes = 64
const timeBytes = 8
/** Far above the 16 signatures that a reader must accept, with those of post-quantum keys. */
const noteCharactersMax = 128 * 1024
const signaturesMax = 64
const keyNames = /^[^\s+\p{Cc}]+$/u
const base64Texts = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Reports whether a text can name a key: it is not empty and has neither spaces nor a plus. */
export function isKeyName(text: string): boolean {
  return keyNames.test(text)
}

/** The bytes of canonical base64; undefined for any other text. */
export function parseBase64(text: string): Uint8Array | undefined {
  if (!base64Texts.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}

/** @throws RangeError for a name that a key cannot have */
export function createVerifierKey(name: string, type: KeyType, publicKey: KeyObject): VerifierKey {
  if (!isKeyName(name)) throw new RangeError(`${JSON.stringify(name)} cannot name a key`)
  const { x = '' } = publicKey.export({ format: 'jwk' })
  const material = Buffer.concat([Buffer.of(signatureTypes[type]), Buffer.from(x, 'base64url')])
  const id = hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), material]), 'hex').slice(0, 8)
  return { name, type, id, publicKey, text: `${name}+${id}+${material.toString('base64')}` }
}

/** The key of a verifier key; undefined for text of another form, or whose id is not that of its key. */
export function parseVerifierKey(text: string): VerifierKey | undefined {
  const [, name = '', id, encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? []
  const material = parseBase64(encoded)
  if (!isKeyName(name) || material?.length !== 1 + publicKeyBytes) return undefined
  const type = material[0] === signatureTypes.log ? 'log' : 'witness'
  if (material[0] !== signatureTypes[type]) return undefined
  const key = createVerifierKey(name, type, publicKeyFrom(material.subarray(1)))
  return key.id === id ? key : undefined
}

/** A key that signs, from the 32 bytes that it was made from. */
export function createSignerKey(name: string, type: KeyType, seed: Uint8Array): SignerKey {
  const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  return { ...createVerifierKey(name, type, createPublicKey(privateKey)), privateKey }
}

/** A public key from its 32 bytes. */
export function publicKeyFrom(raw: Uint8Array): KeyObject {
  const x = Buffer.from(raw).toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

/** Parses a note without checking its signatures; undefined for text of another form. */
export function parseNote(note: string): Note | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note has no control characters but newlines
  if (note.length > noteCharactersMax || /[\u0000-\u0009\u000b-\u001f]|\ufffd/.test(note)) return undefined
  const end = note.lastIndexOf('\n\n')
  if (end < 0 || !note.endsWith('\n')) return undefined
  const lines = note.slice(end + 2, -1).split('\n')
  if (lines.length > signaturesMax) return undefined
  const signatures: NoteSignature[] = []
  for (const line of lines) {
    const signature = parseSignatureLine(line)
    if (signature === undefined) return undefined
    signatures.push(signature)
  }
  return { text: note.slice(0, end + 1), signatures }
}

function parseSignatureLine(line: string): NoteSignature | undefined {
  const [, name = '', encoded = ''] = /^— ([^ ]+) ([^ ]+)$/.exec(line) ?? []
  const bytes = parseBase64(encoded)
  if (!isKeyName(name) || bytes === undefined || bytes.length < 5) return undefined
  return { name, id: Buffer.from(bytes.subarray(0, 4)).toString('hex'), signature: bytes.subarray(4), line }
}

export function formatNote({ text, signatures }: { text: string; signatures: Pick<NoteSignature, 'line'>[] }): string {
  return `${text}\n${signatures.map(({ line }) => `${line}\n`).join('')}`
}

/** Signs a text that ends in a newline. `at` is the time that a witness states, in milliseconds since 1970 UTC. */
export function signNote(text: string, key: SignerKey, at: number): NoteSignature {
  const seconds = Math.floor(at / 1_000)
  const signed = sign(null, signedBytes(text, key.type, BigInt(seconds)), key.privateKey)
  const time = Buffer.alloc(key.type === 'witness' ? timeBytes : 0)
  if (key.type === 'witness') time.writeBigUInt64BE(BigInt(seconds))
  const signature = Buffer.concat([time, signed])
  const encoded = Buffer.concat([Buffer.from(key.id, 'hex'), signature]).toString('base64')
  return { name: key.name, id: key.id, signature, line: `— ${key.name} ${encoded}` }
}

/**
 * Finds the signature of a key. `at` is the time that a witness states, in milliseconds since 1970 UTC.
 * @returns `missing` if the key has not signed, `wrong` if a signature under its name and id does not verify
 */
export function checkSignature(
  { text, signatures }: Note,
  key: VerifierKey,
): { at: number | undefined } | 'missing' | 'wrong' {
  const own = signatures.filter(({ name, id }) => name === key.name && id === key.id)
  if (own.length === 0) return 'missing'
  let at: number | undefined
  for (const { signature } of own) {
    const isWitness = key.type === 'witness'
    if (signature.length !== signatureBytes + (isWitness ? timeBytes : 0)) return 'wrong'
    const seconds = isWitness ? Buffer.from(signature.subarray(0, timeBytes)).readBigUInt64BE() : 0n
    const raw = isWitness ? signature.subarray(timeBytes) : signature
    if (!verify(null, signedBytes(text, key.type, seconds), key.publicKey, raw)) return 'wrong'
    if (isWitness) at = Number(seconds) * 1_000
  }
  return { at }
}

function signedBytes(text: string, type: KeyType, seconds: bigint): Buffer {
  return Buffer.from(type === 'log' ? text : `cosignature/v1\ntime ${seconds}\n${text}`)
}
