// Which of several equal inference servers gets a request: the less busy one of two (Mitzenmacher, IEEE TPDS 2001), or with affinity the
// one that served the same session or prompt before, as long as it is not much busier than the others. Pure.

export type Candidate = { readonly id: string; readonly weight: number; readonly running: number }

/** A server with affinity may have this many times the mean load (Mirrokni, Thorup and Zadimoghaddam, SODA 2018). */
const loadFactorMax = 1.25

/**
 * Compares two candidates by running requests for their weight. `random` returns numbers from 0 to below 1; it selects the two, and between
 * equals. `candidates` has at least one.
 */
export function chooseLessBusy(candidates: readonly Candidate[], random: () => number): Candidate {
  const one = Math.floor(random() * candidates.length)
  const rest = Math.floor(random() * (candidates.length - 1))
  const other = rest < one ? rest : rest + 1
  const [first, second] = [candidates[one], candidates[other]]
  if (first === undefined) throw new Error('There is no candidate')
  if (second === undefined) return first
  return loadOf(second) < loadOf(first) ? second : first
}

/**
 * The first candidate in the order of the key that has room within 1.25 times the mean load of all. The order is by rendezvous hashing
 * (Thaler and Ravishankar, IEEE/ACM ToN 1998), so that a server that leaves moves only its own keys. `hash` maps a text to a number from 0
 * to below 1, evenly.
 */
export function chooseByAffinity(
  candidates: readonly Candidate[],
  key: string,
  hash: (text: string) => number,
): Candidate {
  const running = candidates.reduce((sum, each) => sum + each.running, 0)
  const weights = candidates.reduce((sum, each) => sum + each.weight, 0)
  const isOverloaded = ({ weight, running: own }: Candidate) =>
    own + 1 > Math.ceil((loadFactorMax * (running + 1) * weight) / weights)
  const ranked = candidates
    .map((candidate) => ({
      candidate,
      rank: -candidate.weight / Math.log(Math.max(hash(`${key}\n${candidate.id}`), 1e-12)),
    }))
    .toSorted((one, other) => other.rank - one.rank)
  const chosen = ranked.find(({ candidate }) => !isOverloaded(candidate)) ?? ranked[0]
  if (chosen === undefined) throw new Error('There is no candidate')
  return chosen.candidate
}

function loadOf({ running, weight }: Candidate): number {
  return (running + 1) / weight
}
