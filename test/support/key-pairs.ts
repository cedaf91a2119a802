// Key pairs of test issuers, which have their own key ids. An RSA key pair takes 70 ms of processor time, so a test
// process makes six and takes turns.
import { type GenerateKeyPairOptions, type GenerateKeyPairResult, generateKeyPair } from 'jose'

const made: Promise<GenerateKeyPairResult>[] = []
const madeMax = 6
let taken = 0

/** Returns a new key pair; for RS256, one of six, so six in a row differ. Each is extractable. */
export function takeKeyPair(alg: string, options: GenerateKeyPairOptions = {}): Promise<GenerateKeyPairResult> {
  if (alg !== 'RS256') return generateKeyPair(alg, options)
  const turn = taken++ % madeMax
  made[turn] ??= generateKeyPair(alg, { extractable: true })
  return made[turn]
}
