// Judges what the benches measured by their targets, round by round.
import { median, spread } from './measure.ts'
import { alignColumns, columns, type Result } from './report.ts'
import { type Target, targets } from './targets.ts'

/**
 * What was asked for and what was found. `isMet` is undefined for a figure that is only reported. `wanted` is what we want beyond the bound,
 * if that was not reached.
 */
export type Verdict = {
  target: string
  bound: string
  value: number
  spread: number
  isMet: boolean | undefined
  wanted?: number
}

/** The targets whose arms were all measured. */
export function judgeTargets(results: Result[]): Verdict[] {
  return targets.flatMap((target) => {
    const values = valuesOf(target, results)
    if (values.length === 0) return []
    const { atLeast, atMost, wanted } = target
    const value = median(values)
    const isWanting = wanted !== undefined && (atLeast === undefined ? value > wanted : value < wanted)
    const isMet =
      atLeast === undefined && atMost === undefined
        ? undefined
        : !(value < (atLeast ?? value) || value > (atMost ?? value))
    const found = { target: describe(target), bound: describeBound(target), value, spread: spread(values), isMet }
    return [isWanting ? { ...found, wanted } : found]
  })
}

/** The targets of the benches that ran which cannot be judged, because an arm was left out. */
export function findUnjudged(results: Result[]): string[] {
  const ran = new Set(results.map(({ bench }) => bench))
  return targets
    .filter((target) => ran.has(target.bench) && valuesOf(target, results).length === 0)
    .map((target) => `${target.bench} ${describe(target)}`)
}

/** The last lines say how many targets were met and missed, and name those that were not judged. A target is met only with all that is wanted. */
export function printVerdicts(verdicts: Verdict[], unjudged: string[], print: (line: string) => void): void {
  if (verdicts.length + unjudged.length === 0) return
  const lines = verdicts.map((verdict) => [
    verdict.target,
    `${verdict.value.toFixed(2)} ±${verdict.spread.toFixed(2)}`,
    verdict.bound,
    describeVerdict(verdict),
  ])
  print('')
  for (const line of alignColumns([['Summary', 'found', 'target', ''], ...lines])) print(line)
  const count = (isMet: boolean | undefined) => verdicts.filter((verdict) => verdict.isMet === isMet).length
  const short = verdicts.filter(({ isMet, wanted }) => isMet === true && wanted !== undefined).length
  print(
    `${count(true) - short} met, ${short} short of what is wanted, ${count(false)} missed, ${count(undefined)} without a bound, ${unjudged.length} not judged`,
  )
  for (const target of unjudged) print(`  not judged: ${target}`)
}

function describeVerdict({ isMet, wanted }: Verdict): string {
  if (isMet === undefined) return ''
  if (wanted === undefined) return isMet ? 'met' : 'MISSED'
  return `${isMet ? 'no worse' : 'MISSED'}, ${wanted} wanted`
}

function valuesOf({ bench, load, concurrency, figure, how, of, to }: Target, results: Result[]): number[] {
  const roundsOf = (arm: string) =>
    results.find(
      (each) => each.bench === bench && each.load === load && each.concurrency === concurrency && each.arm === arm,
    )?.figures[figure] ?? []
  const others = roundsOf(to)
  if (how === 'value') return roundsOf(of)
  return roundsOf(of)
    .slice(0, others.length)
    .map((mine, round) =>
      how === 'ratio' ? mine / (others[round] ?? Number.NaN) : mine - (others[round] ?? Number.NaN),
    )
}

function describe({ load, concurrency, figure, how, of, to }: Target): string {
  const sign = how === 'ratio' ? '/' : '–'
  const between = how === 'value' ? of : `${of} ${sign} ${to}`
  return `${load}${concurrency > 0 ? ` at ${concurrency}` : ''}: ${columns[figure].title}, ${between}`
}

function describeBound({ atLeast, atMost }: Target): string {
  if (atLeast !== undefined && atMost !== undefined) return `${atLeast} to ${atMost}`
  if (atLeast !== undefined) return `at least ${atLeast}`
  return atMost === undefined ? '' : `at most ${atMost}`
}
