// The Helm chart that is embedded in the program, its package, and plain manifests from it.
import { parse } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import chart from '../deploy/helm/Chart.yaml' with { type: 'text' }
import networkPolicy from '../deploy/helm/templates/network-policy.yaml' with { type: 'text' }
import sample from '../deploy/helm/templates/sample.yaml' with { type: 'text' }
import server from '../deploy/helm/templates/server.yaml' with { type: 'text' }
import serviceMonitor from '../deploy/helm/templates/service-monitor.yaml' with { type: 'text' }
import schema from '../deploy/helm/values.schema.json' with { type: 'json' }
import values from '../deploy/helm/values.yaml' with { type: 'text' }
import database from '../deploy/libsql-server.yaml' with { type: 'text' }
import cluster from '../deploy/rqlite-cluster.yaml' with { type: 'text' }
import { renderTemplate } from './helm-template.ts'

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

const nodeHeader = `# Latchkey in Kubernetes. Put in your own host names and image, then:
#   kubectl create secret generic latchkey --from-literal=master-key=$(openssl rand -hex 32)
#   kubectl apply -f latchkey.yaml
# The first start creates the database. To create a management key afterward:
#   kubectl exec latchkey-0 -c latchkey -- /usr/local/bin/latchkey keys create --management --name admin
# Prometheus needs a read-only key in the secret latchkey-metrics:
#   kubectl exec latchkey-0 -c latchkey -- /usr/local/bin/latchkey keys create --management read-only --name metrics`

const nodesHeader = `# Three nodes of Latchkey in Kubernetes on one libSQL server. Put in your own host names and images, then:
#   kubectl create secret generic latchkey --from-literal=master-key=$(openssl rand -hex 32) --from-file=database-token
#   kubectl create secret generic latchkey-database --from-file=jwt-key.pem
#   kubectl apply -f latchkey.yaml
# jwt-key.pem is the public half of an Ed25519 key, and database-token a JWT that its private half signed: latchkey help cluster
# has the commands that make them. Name the addresses of your ingress in LATCHKEY_TRUSTED_PROXIES, or all callers share its rate
# limit. With https:// and a private CA, mount its certificate and name it in LATCHKEY_DATABASE_CA_FILE. The first start creates the
# tables. To create a management key afterward:
#   kubectl exec deploy/latchkey -c latchkey -- /usr/local/bin/latchkey keys create --management --name admin`

const clusterHeader = `# Three nodes of Latchkey in Kubernetes on an rqlite cluster of three. Put in your own host names and images, then:
#   kubectl create secret generic latchkey --from-literal=master-key=$(openssl rand -hex 32) --from-file=database-token
#   kubectl create secret generic latchkey-database --from-file=users.json
#   kubectl apply -f latchkey.yaml
# users.json names the users of rqlite, and database-token has user:password of the one for Latchkey: latchkey help availability. Name the
# addresses of your ingress in LATCHKEY_TRUSTED_PROXIES, or all callers share its rate limit. The first start creates the tables. To create a
# management key afterward:
#   kubectl exec deploy/latchkey -c latchkey -- /usr/local/bin/latchkey keys create --management --name admin`

const clusterUrl = `rqlite://${[0, 1, 2].map((number) => `latchkey-database-${number}.latchkey-database:4001`).join(',')}`

type Values = Record<string, Record<string, unknown>>

/** The manifests of one node with a database file, and of a sample workload, as plain YAML. */
export function nodeManifests(): string {
  const { sample: job, serviceMonitor: monitor, ...rest } = parse(values) as Values
  const chosen = {
    ...rest,
    sample: { ...job, policyId: 'the-id-of-the-policy', enabled: true },
    serviceMonitor: { ...monitor, enabled: true },
  }
  const manifests = [server, networkPolicy, serviceMonitor, sample].map((template) => render(template, chosen))
  return `${nodeHeader}\n${manifests.join('\n---\n')}`
}

/** The manifests of three nodes and their libSQL server as plain YAML. */
export function nodesManifests(): string {
  return `${nodesHeader}\n${nodesOn('http://latchkey-database:8080')}\n---\n${database.trimEnd()}`
}

/** The manifests of three nodes and their rqlite cluster as plain YAML. */
export function clusterManifests(): string {
  return `${clusterHeader}\n${nodesOn(clusterUrl)}\n---\n${cluster.trimEnd()}`
}

function nodesOn(url: string): string {
  const { database: given, ...rest } = parse(values) as Values
  return render(server, { ...rest, database: { ...given, url, tokenSecret: 'latchkey' } })
}

function render(template: string, chosen: object): string {
  return renderTemplate(template, chosen, { AppVersion: packageJson.version }).trim()
}
