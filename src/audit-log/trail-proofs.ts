// The proofs in a trail: each is checked with the verifier keys, and all are under one checkpoint. Rules only.
import { type CheckedProof, checkRowProof, proofProblems } from './row-proof.ts'
import { type ProofFile, proofFolders, type Trail } from './trail-format.ts'
import { openCheckpoint } from './transparency/checkpoint.ts'
import { checkSignature, type VerifierKey } from './transparency/note.ts'
import { checkpointIn } from './transparency/proof.ts'

/** Why no proof counts: the keys are of another log, the trail is, or no witness has signed. Undefined if one does. */
export function problemOfAll(
  trail: Trail,
  keys: readonly VerifierKey[],
  witnessKeys: readonly VerifierKey[],
): string | undefined {
  const { origin } = trail.head
  const texts = proofFolders.flatMap((folder) => trail[folder].map(({ text }) => checkpointIn(text)))
  if (texts.length === 0) return 'there are no proofs in the folder'
  for (const text of texts)
    for (const key of keys) {
      const opened = openCheckpoint(text, key)
      if (typeof opened === 'string') continue
      if (opened.origin !== origin) return `trail.json: it is of a different log; the proofs are of ${opened.origin}`
      const hasWitness = witnessKeys.some((witness) => checkSignature(opened.note, witness) !== 'missing')
      return hasWitness || witnessKeys.length === 0 ? undefined : `the proofs: ${proofProblems.no_witness}`
    }
  return `the verifier key has signed none of the proofs: get the key of ${origin}`
}

export type ProvenEntry = Extract<CheckedProof, { problem: undefined }>
export type OpenProof = (proof: ProofFile, kind: string) => ProvenEntry | undefined
/** Of the proofs so far: the size of their checkpoint, who has cosigned it, and their newest time in milliseconds since 1970 UTC. */
export type ProofState = { size: number; witnesses: { name: string; at: number }[]; newestAt: number }

/** Returns a function that checks a proof of a kind. No entry may be counted twice, and all must be under one checkpoint. */
export function createOpening(
  keys: readonly VerifierKey[],
  witnessKeys: readonly VerifierKey[],
  state: ProofState,
  report: (problem: string) => void,
): OpenProof {
  const seen = new Set<number>()
  let checkpoint: string | undefined
  return ({ file, text }, kind) => {
    const results = keys.map((key) => checkRowProof(text, key, witnessKeys))
    const checked = results.find(({ problem }) => problem === undefined) ?? results[0]
    if (checked === undefined || checked.problem !== undefined)
      return void report(`${file}: ${checked === undefined ? 'there is no key' : proofProblems[checked.problem]}`)
    if (checked.kind !== kind) return void report(`${file}: it is of an entry of kind ${checked.kind}`)
    if (seen.has(checked.index)) return void report(`${file}: its entry is there twice`)
    const [own] = checkpointIn(text).split('\n\n')
    checkpoint ??= own
    if (checkpoint !== own) return void report(`${file}: its checkpoint is not that of the others`)
    seen.add(checked.index)
    state.newestAt = Math.max(state.newestAt, Date.parse(checked.at))
    state.size = checked.size
    state.witnesses = checked.witnesses
    return checked
  }
}
