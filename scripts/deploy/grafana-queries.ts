// A panel of the Grafana dashboard, and the queries that panels are made of.

type Target = { expr: string; legend: string }
export type Panel = {
  title: string
  /** Columns of the 24 that a row has. */
  width: number
  /** Grafana's word for it. */
  unit: string
  targets: Target[]
  /** Members of the panel itself. */
  more?: object
  /** Members of the defaults of its fields. */
  limits?: object
  /** Without it, a time series. */
  type?: string
}

export function panel(
  title: string,
  width: number,
  unit: string,
  shown: string | Target[],
  legend = '{{instance}}',
): Panel {
  return { title, width, unit, targets: typeof shown === 'string' ? [{ expr: shown, legend }] : shown }
}

/** A metric of the chosen instances. */
export function each(metric: string, more = ''): string {
  return `${metric}{job="$job", instance=~"$instance"${more}}`
}

/** A metric of the chosen instances and organizations. */
export function own(metric: string, more = ''): string {
  return each(metric, `, organization=~"$organization"${more}`)
}

export function since(metric: string): string {
  return `time() - ${each(metric)}`
}

export function rate(series: string): string {
  return `rate(${series}[$__rate_interval])`
}

export function rateBy(labels: string, series: string): string {
  return `sum by (${labels}) (${rate(series)})`
}

export function increase(series: string, time = '$__rate_interval'): string {
  return `increase(${series}[${time}])`
}

export function quantile(part: number, labels: string, buckets: string): string {
  return `histogram_quantile(${part}, ${rateBy(labels, buckets)})`
}

export function quantiles(labels: string, buckets: string, legend = ''): Target[] {
  return [
    { expr: quantile(0.5, labels, buckets), legend: `p50${legend}` },
    { expr: quantile(0.99, labels, buckets), legend: `p99${legend}` },
  ]
}
