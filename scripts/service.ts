// `latchkey service`: files for the programs around a server, as they are embedded in this one, and the systemd unit in place.
import { Argument, type Command } from 'commander'
import { Fault } from '../src/fault.ts'
import caddy from './deploy/Caddyfile' with { type: 'text' }
import container from './deploy/Containerfile' with { type: 'text' }
import doctorTimer from './deploy/doctor-timer.sh' with { type: 'text' }
import githubAction from './deploy/github-action.yml' with { type: 'text' }
import gitlabComponent from './deploy/gitlab-component.yml' with { type: 'text' }
import { dashboard } from './deploy/grafana-dashboard.ts'
import haproxy from './deploy/haproxy.cfg' with { type: 'text' }
import sidecar from './deploy/kubernetes-sidecar.yaml' with { type: 'text' }
import systemd from './deploy/latchkey.service' with { type: 'text' }
import logrotate from './deploy/logrotate.conf' with { type: 'text' }
import nginx from './deploy/nginx.conf' with { type: 'text' }
import nginxNodes from './deploy/nginx-nodes.conf' with { type: 'text' }
import alerts from './deploy/prometheus-alerts.yml' with { type: 'text' }
import rqlite from './deploy/rqlite.service' with { type: 'text' }
import sqld from './deploy/sqld.service' with { type: 'text' }
import { serviceInstallCommand } from './service-install.ts'
import { command, givenTo, group, print, runAlone, withSettings } from './shared/command-line.ts'
import { chartFiles, clusterManifests, nodeManifests, nodesManifests, packChart } from './shared/helm-chart.ts'

/** What each file is, and its text. Texts that take long to make are made when they are printed: help reads this table. */
const files: Readonly<Record<string, readonly [says: string, text: string | (() => string)]>> = {
  systemd: ['a hardened unit; latchkey service install puts it in place', systemd],
  rqlite: ['a unit for a node of an rqlite cluster', rqlite],
  sqld: ['a unit for a libSQL server', sqld],
  container: ['a Containerfile for an image without a shell and without root', container],
  kubernetes: ['manifests, with a sample workload', nodeManifests],
  'kubernetes-nodes': ['manifests for three nodes on a libSQL server', nodesManifests],
  'kubernetes-rqlite': ['manifests for three nodes on an rqlite cluster of three', clusterManifests],
  sidecar: ['a workload in Kubernetes with the agent beside it', sidecar],
  'github-action': ['an action that gives the jobs of a workflow the command latchkey', githubAction],
  'gitlab-component': ['the same for GitLab CI/CD', gitlabComponent],
  nginx: ['a server block that ends TLS', nginx],
  'nginx-nodes': ['the same in front of three nodes', nginxNodes],
  haproxy: ['a configuration of HAProxy that ends TLS, for one server or several nodes', haproxy],
  caddy: ['a Caddyfile that ends TLS', caddy],
  logrotate: ['rotates the access log', logrotate],
  'doctor-timer': ['a script that lets systemd run latchkey doctor every day', doctorTimer],
  grafana: [
    'a Grafana dashboard; import it and choose the Prometheus data source',
    () => JSON.stringify(dashboard, null, 2),
  ],
  alerts: ['alert rules; name the file under rule_files in the configuration of Prometheus', alerts],
}
const chart = 'a Helm chart (.tgz), from which the manifests come'

export function serviceCommand(): Command {
  const made = command('print', 'Print a file for a program that runs with the server', [
    'service print container > Containerfile',
    'service print helm > latchkey-chart.tgz',
    'service print grafana > latchkey-dashboard.json',
    'service print alerts > /etc/prometheus/latchkey-alerts.yml',
  ])
    .addArgument(new Argument('<file>', 'the file').choices([...Object.keys(files), 'helm']))
    .addHelpText('after', `\nFiles:\n${listFiles()}`)
  const printing = withSettings(made, { shown: [] }).action(async (...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const [file = ''] = words
    if (file === 'helm') return printChart(options.json === true)
    const [, found = ''] = files[file] ?? []
    const text = (typeof found === 'string' ? found : found()).trimEnd()
    print(options.json === true ? JSON.stringify({ file, text }) : text)
  })
  return group('service', 'Print and install files for the programs around a server', [
    printing,
    serviceInstallCommand(),
  ])
}

function listFiles(): string {
  const all = [...Object.entries(files).map(([name, [says]]) => [name, says]), ['helm', chart]]
  return all.map(([name = '', says]) => `  ${name.padEnd(18)}${says}`).join('\n')
}

async function printChart(asJson: boolean): Promise<void> {
  if (asJson) return print(JSON.stringify({ file: 'helm', files: chartFiles }))
  if (process.stdout.isTTY)
    throw new Fault(
      'usage',
      'The chart is a binary file; redirect it: latchkey service print helm > latchkey-chart.tgz',
    )
  process.stdout.write(await packChart())
}

if (import.meta.main) await runAlone(serviceCommand())
