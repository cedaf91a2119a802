// `latchkey service print`: files for the programs around a server, as they are embedded in this one.
import { Argument, type Command } from 'commander'
import dashboard from './deploy/grafana-dashboard.json' with { type: 'json' }
import alerts from './deploy/prometheus-alerts.yml' with { type: 'text' }
import { command, givenTo, group, print, runAlone, withSettings } from './shared/command-line.ts'

const files = {
  grafana: JSON.stringify(dashboard, null, 2),
  alerts: alerts.trimEnd(),
} as const satisfies Record<string, string>

export function serviceCommand(): Command {
  const made = command('print', 'Print a file for a program that runs with the server', [
    'service print grafana > latchkey-dashboard.json',
    'service print alerts > /etc/prometheus/latchkey-alerts.yml',
  ])
    .addArgument(new Argument('<file>', 'the file').choices(Object.keys(files)))
    .addHelpText(
      'after',
      `
Files:
  grafana   a Grafana dashboard; import it and choose the Prometheus data source
  alerts    alert rules; name the file under rule_files in the configuration of Prometheus`,
    )
  const printing = withSettings(made, { shown: [] }).action((...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const file = words[0] as keyof typeof files
    print(options.json === true ? JSON.stringify({ file, text: files[file] }) : files[file])
  })
  return group('service', 'Print files for the programs around a server', [printing])
}

if (import.meta.main) await runAlone(serviceCommand())
