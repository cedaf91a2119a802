// Metrics as text in the exposition format of Prometheus, version 0.0.4.
import type { Pace } from '../../db/read/pace.ts'
import type { Family } from './metric-families.ts'
import type { Sample } from './series.ts'

export const prometheusMediaType = 'text/plain; version=0.0.4; charset=utf-8'

export type TextOptions = {
  /** What a label's value is called, such as the name of a key instead of its id. */
  nameOf: (label: string, value: string) => string
  /** Lets other requests be served in between: a family may have 20,000 lines. */
  pace: Pace
}

/** Lines of one family. Samples with equal labels become one, with their sum: two keys may have had the same name. Empty without samples. */
export async function familyText(
  { name, type, help, labels }: Family,
  samples: readonly Sample[],
  { nameOf, pace }: TextOptions,
): Promise<string> {
  if (samples.length === 0) return ''
  const values = new Map<string, number>()
  for (const { labels: given, value, suffix = '', le } of samples) {
    const pairs = labels.map((label, index) => [label, nameOf(label, given[index] ?? '')] as const)
    const line = name + suffix + labelsText(le === undefined ? pairs : [...pairs, ['le', le]])
    values.set(line, (values.get(line) ?? 0) + value)
    const pause = pace()
    if (pause !== undefined) await pause
  }
  const lines = [...values].map(([series, value]) => `${series} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

/** A label without a value is the same as no label. */
function labelsText(pairs: readonly (readonly [name: string, value: string])[]): string {
  const given = pairs.filter(([, value]) => value !== '').map(([name, value]) => `${name}="${escaped(value)}"`)
  return given.length === 0 ? '' : `{${given.join(',')}}`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
