// Long lists, page by page: a server that made a list of 100,000 rows in one go would need a gigabyte, and hold up requests.
import { once } from 'node:events'
import type { Command } from 'commander'
import type { OperationResponse } from '../../src/admin/operations.ts'
import { askServer } from '../../src/admin/transport/client.ts'
import { Fault, pageStartGone } from '../../src/fault.ts'
import { socketPathFor } from '../../src/settings/config.ts'
import { type CommandInput, callOperation } from './call-operation.ts'
import { type Arguments, dependencies, givenTo, print, readConfig, withSettings } from './command-line.ts'
import { inOrganization } from './operation-command.ts'
import { momentText, wholeNumber } from './option-values.ts'

type ListOperation = 'keys.list' | 'policies.list' | 'issuers.list'
type RowOf<Name extends ListOperation> = OperationResponse<Name>['data'][number]

/** As many as an operation gives at once. */
const pageRows = 1_000

/** The options of all these lists that leave rows out. */
export const pageFilters = ['contains', 'unused', 'neverUsed']

/**
 * Creates the `list` command of a kind, with `--contains`, `--unused`, `--never-used` and `--limit`. Without a limit, it prints all rows.
 */
export function pagedList<Name extends ListOperation>(
  made: Command,
  name: Name,
  toInput: (given: Arguments) => CommandInput<Name>,
  draw: (rows: RowOf<Name>[], given: Arguments) => string,
): Command {
  const [what] = name.split('.')
  const narrowed = made
    .option(
      '--unused <time>',
      `only ${what} that have not worked since this time, or for a duration such as 90d`,
      momentText,
    )
    .option('--never-used', `only ${what} that have never worked, and were made more than a day ago`)
    .option('--contains <text>', 'only names that contain this text, in any case')
    .option('--limit <rows>', `maximum number of rows, up to ${pageRows} (default: all)`, wholeNumber)
  const shown = ['LATCHKEY_DATABASE_URL'] as const
  return withSettings(inOrganization(narrowed), { shown }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const { contains, unused, neverUsed, limit, json, organization } = given.options
    const filters = { contains, unused_since: unused, never_used: neverUsed }
    const input = { organization, ...filters, ...toInput(given) } as CommandInput<Name>
    if (limit === undefined && json === true) return printRows(readPages(given, name, input))
    const response = limit === undefined ? undefined : await call(given, name, { ...input, limit })
    if (json === true) return print(JSON.stringify(response, null, 2))
    const rows = response?.data ?? (await Array.fromAsync(readPages(given, name, input))).flat()
    print([draw(rows as RowOf<Name>[], given), ...remainder(response)].join('\n'))
  })
}

function remainder(response: { data: unknown[]; total_count?: number } | undefined): string[] {
  const { data = [], total_count: total = 0 } = response ?? {}
  return total > data.length ? [`${data.length} of ${total} rows; to see more, raise or remove --limit`] : []
}

function call<Name extends ListOperation>({ options }: Arguments, name: Name, input: CommandInput<Name>) {
  return callOperation(readConfig(options), dependencies, name, input)
}

/** All rows: from a running server in pages, and otherwise in one go. */
async function* readPages<Name extends ListOperation>(
  given: Arguments,
  name: Name,
  input: CommandInput<Name>,
): AsyncGenerator<RowOf<Name>[], undefined> {
  const socketPath = socketPathFor(readConfig(given.options))
  const fields = JSON.parse(JSON.stringify(input)) as object
  const ask = async (after: string) => {
    const page = (await askServer(socketPath, name, { ...fields, after, limit: pageRows }))?.result
    return page as Page<RowOf<Name>> | undefined
  }
  const first = await ask('')
  if (first === undefined) yield (await call(given, name, input)).data as RowOf<Name>[]
  else
    yield* joinPages(first, async (after) => {
      const page = await ask(after)
      if (page !== undefined) return page
      throw new Fault('unavailable', 'The server stopped during the list; run the command again')
    })
}

type Page<Row> = { data: Row[]; next?: string }

/**
 * Each row once. If the row after which a page begins was deleted meanwhile, an earlier one takes its place, so that the list misses none
 * that stays.
 */
export async function* joinPages<Row extends { id: string }>(
  first: Page<Row>,
  read: (after: string) => Promise<Page<Row>>,
): AsyncGenerator<Row[], undefined> {
  const seen = new Set<string>()
  /** Where pages can begin, the latest last. */
  const starts = ['']
  for (let page = first; ; ) {
    yield page.data.filter(({ id }) => !seen.has(id))
    for (const { id } of page.data) seen.add(id)
    if (page.next === undefined) return
    starts.push(...page.data.map(({ id }) => id), page.next)
    page = await readFrom(starts, read)
  }
}

async function readFrom<Row>(starts: string[], read: (after: string) => Promise<Page<Row>>): Promise<Page<Row>> {
  for (;;) {
    const after = starts.at(-1) ?? ''
    try {
      return await read(after)
    } catch (error) {
      if (!(error instanceof Fault) || error.reason !== pageStartGone || after === '') throw error
      starts.pop()
    }
  }
}

/** What `JSON.stringify` makes of `{ data }` with two spaces, written as the pages arrive. */
async function printRows(pages: AsyncIterable<unknown[]>): Promise<void> {
  let isFirst = true
  for await (const rows of pages)
    for (const row of rows) {
      const text = JSON.stringify(row, null, 2).replaceAll('\n', '\n    ')
      if (!process.stdout.write(`${isFirst ? '{\n  "data": [' : ','}\n    ${text}`)) await once(process.stdout, 'drain')
      isFirst = false
    }
  print(isFirst ? '{\n  "data": []\n}' : '\n  ]\n}')
}
