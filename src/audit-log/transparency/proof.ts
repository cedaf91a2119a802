// Proofs as files (C2SP tlog-proof): an entry's place in a log, the hashes up to the root, and the checkpoint that has it.
import { parseCheckpoint, type SignedCheckpoint } from './checkpoint.ts'
import { hashBytes } from './merkle.ts'
import { parseBase64 } from './note.ts'

export type LogProof = {
  /** What a reader needs to compute the entry. Nothing signs it. */
  extra: Uint8Array | undefined
  index: number
  hashes: Uint8Array[]
  checkpoint: SignedCheckpoint
}

const header = 'c2sp.org/tlog-proof@v1'
/** Hashes of a tree with 2^53 entries. */
const hashesMax = 53

/** `checkpoint` is the whole note. */
export function formatProof({
  extra,
  index,
  hashes,
  checkpoint,
}: Omit<LogProof, 'checkpoint'> & { checkpoint: string }): string {
  const encode = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
  const lines = [header, ...(extra === undefined ? [] : [`extra ${encode(extra)}`]), `index ${index}`]
  return `${[...lines, ...hashes.map(encode)].join('\n')}\n\n${checkpoint}`
}

/** The checkpoint of a proof, as the note that it is; any other text as it is. */
export function checkpointIn(text: string): string {
  return text.startsWith(`${header}\n`) ? text.slice(text.indexOf('\n\n') + 2) : text
}

/** Parses a proof without checking it; undefined for text of another form. */
export function parseProof(text: string): LogProof | undefined {
  const end = text.indexOf('\n\n')
  const [first, ...lines] = text.slice(0, Math.max(end, 0)).split('\n')
  const extraText = lines[0]?.startsWith('extra ') ? lines.shift()?.slice('extra '.length) : undefined
  const extra = extraText === undefined ? undefined : parseBase64(extraText)
  const [, index = ''] = /^index (0|[1-9][0-9]{0,15})$/.exec(lines.shift() ?? '') ?? []
  const hashes = lines.map(parseBase64).filter((each) => each?.length === hashBytes) as Uint8Array[]
  const checkpoint = parseCheckpoint(text.slice(end + 2))
  const isWhole = first === header && index !== '' && Number.isSafeInteger(Number(index))
  if (!isWhole || checkpoint === undefined || lines.length > hashesMax || hashes.length < lines.length) return undefined
  if ((extraText === undefined) !== (extra === undefined)) return undefined
  return { extra, index: Number(index), hashes, checkpoint }
}
