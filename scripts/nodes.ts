// `latchkey nodes`: the nodes of a server database.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { command, group, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { table } from './shared/table.ts'
import { stateTone } from './shared/terminal.ts'

type Node = OperationResponse<'nodes.list'>['data'][number]

export function nodesCommand(): Command {
  return group('nodes', 'The nodes that serve a server database', [
    operationCommand(
      command('list', 'List the nodes, with their version and what they have seen', [
        'nodes list',
        'nodes list --json',
      ]),
      'nodes.list',
      () => ({}),
      ({ data }) => draw(data),
    ),
  ])
}

function draw(nodes: Node[]): string {
  return table(
    nodes,
    [
      ['STATE', (row) => (row.live ? 'live' : 'gone'), stateTone],
      ['NAME', (row) => row.name],
      ['VERSION', (row) => row.version],
      ['REVISION', (row) => String(row.revision)],
      ['LAG', (row) => String(row.lag)],
      ['LAST SEEN', (row) => `${(row.idle_milliseconds / 1_000).toFixed(1)} s ago`],
    ],
    'No nodes: one process serves a database file, and no node of a server database is running',
  )
}

if (import.meta.main) await runAlone(nodesCommand())
