// The Helm chart that is embedded in the program, and its package.
import chart from '../deploy/helm/Chart.yaml' with { type: 'text' }
import networkPolicy from '../deploy/helm/templates/network-policy.yaml' with { type: 'text' }
import sample from '../deploy/helm/templates/sample.yaml' with { type: 'text' }
import server from '../deploy/helm/templates/server.yaml' with { type: 'text' }
import serviceMonitor from '../deploy/helm/templates/service-monitor.yaml' with { type: 'text' }
import schema from '../deploy/helm/values.schema.json' with { type: 'json' }
import values from '../deploy/helm/values.yaml' with { type: 'text' }

/** The files of the chart by their paths in it. */
export const chartFiles: Readonly<Record<string, string>> = {
  'Chart.yaml': chart,
  'values.yaml': values,
  'values.schema.json': `${JSON.stringify(schema, null, 2)}\n`,
  'templates/server.yaml': server,
  'templates/network-policy.yaml': networkPolicy,
  'templates/service-monitor.yaml': serviceMonitor,
  'templates/sample.yaml': sample,
}

/** Returns the chart as `helm package` would: a gzip archive with one folder. */
export function packChart(): Promise<Uint8Array> {
  const entries = Object.entries(chartFiles).map(([path, text]) => [`latchkey/${path}`, text])
  return new Bun.Archive(Object.fromEntries(entries) as Record<string, string>, { compress: 'gzip' }).bytes()
}
