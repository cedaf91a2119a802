// What tests leave to chance. All of a run follows from one seed, which each fault test prints: LATCHKEY_TEST_SEED=… runs it again.
import { randomInt } from 'node:crypto'

export type Chance = () => number

/** Programs that a test starts have the same seed. */
process.env.LATCHKEY_TEST_SEED ??= String(randomInt(2 ** 32))
const seed = readSeed(process.env.LATCHKEY_TEST_SEED)

/** For programs that do not have the environment of this one. */
export const chanceEnvironment = { LATCHKEY_TEST_SEED: String(seed) }

/** How often a fault test kills. More kills find more: with 20 and more, LATCHKEY_TEST_KILLS makes such a run. */
export function killsOr(usual: number): number {
  return Number(process.env.LATCHKEY_TEST_KILLS ?? usual)
}

/** Numbers from 0 up to 1, the same for the same seed and name. Prints the seed. */
export function createChance(name: string): Chance {
  process.stderr.write(`Seed of ${name}: LATCHKEY_TEST_SEED=${seed}\n`)
  return drawFrom(seed ^ Bun.hash.murmur32v3(name))
}

/** As `createChance` for what no test fails by, such as the jitter of retries. Prints nothing. */
export function createJitter(): Chance {
  return drawFrom(seed)
}

/** @throws Error for what is not a seed, which would replay something else */
export function readSeed(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number >= 2 ** 32) throw new Error(`LATCHKEY_TEST_SEED is not a seed: ${text}`)
  return number
}

/** Mulberry32: 32 bits of state, and each seed has another sequence. */
export function drawFrom(start: number): Chance {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
