// The targets of the benches: ratios and differences of figures that were measured in one run, round by round, so that noise that lasts
// longer than a round counts on both sides.
import { cpus } from 'node:os'
import type { FigureName, Result } from './report.ts'

type Load = Pick<Result, 'bench' | 'load' | 'concurrency'>
export type Target = Load & {
  figure: FigureName
  /** `of` divided by `to`, `of` less `to`, or `of` alone. */
  how: 'ratio' | 'difference' | 'value'
  of: string
  to: string
  atLeast?: number
  atMost?: number
  /** Better than the bound, which guards what was reached: what we still want. */
  wanted?: number
}

const cpu = 'cpuMicroseconds'
const exchange = (load: string, concurrency: number, atLeast: number, wanted: number): Target => ({
  ...{ bench: 'exchange', load, concurrency, figure: cpu, how: 'ratio', of: 'bare limit', to: 'latchkey' },
  ...{ atLeast, wanted },
})
const throughput = (load: string): Target => ({
  ...{ bench: 'exchange', load, concurrency: 32, figure: 'perSecond', how: 'ratio', of: 'latchkey', to: 'bare limit' },
})
const gateway = (load: string, concurrency: number, of: string, atLeast: number, wanted?: number): Target => ({
  ...{ bench: 'gateway', load, concurrency, figure: cpu, how: 'ratio', of, to: 'latchkey', atLeast },
  ...(wanted === undefined ? {} : { wanted }),
})
const added = (load: string, concurrency: number, figure: FigureName, atMost: number): Target => ({
  ...{ bench: 'gateway', load, concurrency, figure, how: 'difference', of: 'latchkey', to: 'direct', atMost },
})
const grown = (figure: FigureName, of: string, atMost?: number): Target => ({
  ...{ bench: 'growth', load: 'start', concurrency: 0, figure, how: 'difference', of, to: 'empty' },
  ...(atMost === undefined ? {} : { atMost }),
})

const start = (figure: FigureName, how: Target['how'], of: string, atMost: number): Target => ({
  ...{ bench: 'start', load: 'binary', concurrency: 0, figure, how, of, to: 'empty Bun.serve', atMost },
})

const review = (load: string, figure: FigureName, of: string, bound: Pick<Target, 'atLeast' | 'atMost'>): Target => ({
  ...{ bench: 'review', load, concurrency: 0, figure, how: 'value', of, to: '' },
  ...bound,
})
/** No input may hold the event loop for longer. */
const heldByDocument = (load: string): Target => ({
  ...{ bench: 'documents', load, concurrency: 0, figure: 'longestMilliseconds', how: 'value', of: 'apply', to: '' },
  atMost: 50,
})
const recording = (concurrency: number): Target => ({
  ...{ bench: 'review', load: 'exchange', concurrency, figure: cpu, how: 'ratio' },
  ...{ of: 'latchkey, selected claims', to: 'latchkey, no claims', atMost: 1.05 },
})

/** What one process can serve, whatever the number of cores: a million divided by this is its most requests in a second. */
const inOneThread = (load: string, concurrency: number, atMost: number): Target => ({
  ...{ bench: 'cores', load, concurrency, figure: 'mainThreadMicroseconds', how: 'value' },
  ...{ of: `${cpus().length} of the cores`, to: '', atMost },
})

const queue = (load: string, figure: FigureName, bound: Pick<Target, 'atLeast' | 'atMost'>): Target => ({
  ...{ bench: 'queue', load, concurrency: 0, figure, how: 'value', of: 'latchkey', to: '' },
  ...bound,
})
/** `mostRunning`: what the inference server of the bench is allowed to get. The wait is one of its service times and one place. */
const queued: Target[] = [
  queue('equal weights', 'jainIndex', { atLeast: 0.98 }),
  queue('equal weights', 'mostRunning', { atMost: 16 }),
  { ...queue('equal weights', 'perSecond', { atLeast: 0.98 }), how: 'ratio', to: 'direct' },
  queue('weights 1, 2 and 4', 'offSharePercent', { atMost: 5 }),
  queue('one request at a time beside a flood of 500', 'p99WaitMilliseconds', { atMost: 212.5 }),
  queue('nothing waits', 'microseconds', { atMost: 3 }),
  ...(['failed', 'delayedPercent'] as const).map(
    (figure): Target => ({
      ...queue('a replica is killed every 10 s', figure, { atMost: figure === 'failed' ? 0 : 0.5 }),
      concurrency: 16,
    }),
  ),
]

const audit = (load: string, figure: FigureName, atMost?: number): Target => ({
  ...{ bench: 'audit', load, concurrency: 0, figure, how: 'value', of: 'latchkey', to: '' },
  ...(atMost === undefined ? {} : { atMost }),
})
const audited: Target[] = [
  audit('an exchange beside off', 'microseconds', 3),
  audit('an exchange beside off', 'longestMilliseconds', 50),
  audit('an entry in the database', 'bytes', 90),
  audit('an entry in the folder', 'bytes', 200),
  audit('an entry verified in the database', 'microseconds', 6),
  audit('a proof', 'milliseconds', 50),
  audit('a folder verified', 'milliseconds', 60_000),
]

const file = 'latchkey on a file'
/** What the first node on a server costs beyond a file, and what the database adds 5 ms away. */
const onServer = (load: string, concurrency: number): Target[] => {
  const compared = { bench: 'nodes', concurrency, of: 'latchkey, 1 node', to: file } as const
  return [
    { ...compared, load, figure: cpu, how: 'ratio' },
    { ...compared, load, figure: 'p50Milliseconds', how: 'difference' },
    { ...compared, load, figure: 'p99Milliseconds', how: 'difference' },
    { ...compared, load: `${load}, database 5 ms away`, figure: 'p99Milliseconds', how: 'difference' },
  ]
}
const rate = (load: string, of: string): Target => ({
  ...{ bench: 'nodes', load, concurrency: 0, figure: 'admittedPercent', how: 'value', of, to: '' },
  ...{ atLeast: 90, atMost: 110 },
})
const nodeCounts = ['1 node', '2 nodes', '3 nodes']
const rates = [
  ...[20, 60, 600].flatMap((each) =>
    nodeCounts.map((nodes) => rate(`${each} a minute, at once`, `latchkey, ${nodes}`)),
  ),
  ...['20 a minute from the start', '60 a minute', '600 a minute'].flatMap((load) => [
    ...nodeCounts.map((nodes) => rate(load, `latchkey, ${nodes}`)),
    rate(`${load} while nodes change`, 'latchkey, 3 nodes'),
  ]),
]

const budget = (
  load: string,
  concurrency: number,
  figure: FigureName,
  arms: Pick<Target, 'how' | 'of' | 'to'>,
  atMost?: number,
) => ({
  ...{ bench: 'budgets', load, concurrency, figure, ...arms },
  ...(atMost === undefined ? {} : { atMost }),
})
const beyond = (hold: string, atMost?: number): Target[] =>
  [file, 'latchkey, 3 nodes'].map((of) =>
    budget(`${hold} of 200 requests`, 64, 'overshoot', { how: 'value', of, to: '' }, atMost),
  )
const withBudgets = (count: string, atMost: number): Target =>
  budget('JSON', 32, cpu, { how: 'ratio', of: `latchkey with ${count}`, to: 'latchkey with no budgets' }, atMost)
const budgets: Target[] = [
  ...beyond('limit of a key'),
  ...beyond('budget, hold expected', 2),
  ...beyond('budget, hold worst', 1),
  withBudgets('1 budget', 1.02),
  withBudgets('10 budgets', 1.06),
  budget('start', 0, 'rssMegabytes', { how: 'difference', of: '100000 values', to: 'no budget' }, 60),
]

/** What a request waits for at a fixed rate, in multiples of what it waits for at the server with nothing to do. */
const atRates = (load: string, to: string, atMost: number): Target[] =>
  [25, 50].map((share) => ({
    ...{ bench: 'rate', load: `${load} at ${share} %`, concurrency: 0, figure: 'p99Milliseconds', how: 'ratio' },
    ...{ of: 'latchkey', to, atMost },
  }))
const tail = (bench: string, load: string, concurrency: number, to: string, atMost: number): Target => ({
  ...{ bench, load, concurrency, figure: 'p99Milliseconds', how: 'ratio', of: 'latchkey', to, atMost },
})

/**
 * The bounds guard what was measured on a quiet machine on 2026-11-27, less what the rounds span: a change that misses one has a price that
 * somebody must want to pay. Where more is wanted, the bench says so.
 */
export const targets: Target[] = [
  exchange('RS256', 32, 0.6, 0.75),
  exchange('ES256', 32, 0.72, 0.8),
  throughput('RS256'),
  throughput('ES256'),
  exchange('RS256', 1, 0.55, 0.9),
  exchange('ES256', 1, 0.65, 0.9),
  tail('exchange', 'RS256', 32, 'bare limit', 2),
  tail('exchange', 'RS256', 1, 'bare limit', 2),
  gateway('JSON', 64, 'bare guard', 0.33, 0.55),
  gateway('JSON', 1, 'bare guard', 0.28, 0.5),
  tail('gateway', 'JSON', 64, 'bare guard', 2),
  tail('gateway', 'JSON', 1, 'bare guard', 2),
  gateway('JSON', 64, 'Portkey on Bun', 2.3, 2.8),
  gateway('JSON', 64, 'Portkey on Node', 1),
  gateway('JSON', 1, 'Portkey on Bun', 1, 1.4),
  added('JSON', 1, 'p50Milliseconds', 0.3),
  gateway('stream', 64, 'bare guard', 0.6, 0.85),
  gateway('stream', 1, 'bare guard', 0.58, 0.7),
  ...atRates('exchange ES256', 'bare limit', 2),
  ...atRates('JSON', 'direct', 3),
  added('stream', 64, 'firstByteMilliseconds', 0.9),
  inOneThread('RS256', 32, 110),
  inOneThread('ES256', 32, 110),
  inOneThread('JSON', 64, 90),
  ...queued,
  ...audited,
  grown('startMilliseconds', '100,000 policies and keys', 400),
  grown('rssMegabytes', '100,000 policies and keys', 80),
  grown('startMilliseconds', '1,000,000 policies and keys', 5_000),
  grown('rssMegabytes', '1,000,000 policies and keys', 500),
  start('startMilliseconds', 'value', 'latchkey', 80),
  start('startMilliseconds', 'value', '100,000 policies and keys', 400),
  start('rssMegabytes', 'value', 'latchkey', 90),
  { ...start('rssMegabytes', 'difference', 'latchkey', 55), wanted: 30 },
  recording(1),
  recording(32),
  review('lint', 'milliseconds', 'a policy', { atMost: 5 }),
  review('lint', 'milliseconds', 'the worst condition', { atMost: 50 }),
  review('back-test', 'perSecond', 'selected claims', { atLeast: 20_000 }),
  review('back-test', 'longestMilliseconds', 'selected claims', { atMost: 50 }),
  review('1,000 policies', 'milliseconds', 'plan', { atMost: 3_000 }),
  review('1,000 policies', 'milliseconds', 'apply', { atMost: 3_000 }),
  ...['keys', 'policies', 'presets', 'issuers', 'prices'].flatMap((kind) =>
    ['new', 'changed'].map((state) => heldByDocument(`5,000 ${state} ${kind}`)),
  ),
  ...['exchange', 'inference'].flatMap((load) => [8, 64].flatMap((concurrency) => onServer(load, concurrency))),
  {
    ...{ bench: 'nodes', load: 'budget of 200 requests', concurrency: 64, figure: 'overshoot', how: 'difference' },
    ...{ of: 'latchkey, 3 nodes', to: file },
  },
  ...rates,
  ...budgets,
  {
    ...{ bench: 'growth', load: 'exchange', concurrency: 32, figure: cpu, how: 'ratio' },
    ...{ of: '100,000 policies and keys', to: 'empty', atMost: 1.2 },
  },
]
