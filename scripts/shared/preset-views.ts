// Formats the output of `latchkey presets`: presets, versions, and the differences between two versions.
import { createTwoFilesPatch } from 'diff'
import type { OperationResponse } from '../../src/admin/operations.ts'
import type { Arguments } from './command-line.ts'
import { lastUse, managedBy, moment, printable, record } from './render.ts'
import { table } from './table.ts'
import { paint, readTerminal, stateTone, type Tone } from './terminal.ts'

type Version = OperationResponse<'presets.version'>
type Preset = OperationResponse<'presets.show'>

/** Multi-line text, with each line safe for a terminal. */
const lines = (text: string) => text.split('\n').map(printable).join('\n')
export const pretty = (value: unknown) => lines(JSON.stringify(value, null, 2))

const showContent = ({ system_prompt, config }: { system_prompt: string | null; config: object }) =>
  [...(system_prompt === null ? [] : ['System prompt:', lines(system_prompt), '']), 'Settings:', pretty(config)].join(
    '\n',
  )

export const showVersion = (row: Version) =>
  [
    record({ version: row.version, 'created (UTC)': moment(row.created_at), by: row.creator_id }),
    '',
    showContent(row),
  ].join('\n')

export const show = (row: Preset) => {
  const { slug, name, description, status, updated_at, designated_version: version } = row
  const fields = { slug, name, description, status, version: version.version, 'updated (UTC)': moment(updated_at) }
  return [record({ ...fields, ...managedBy(row), ...lastUse(row) }), '', showContent(version)].join('\n')
}

export const state = ({ slug, status, designated_version: { version } }: Preset) =>
  `${slug} is ${status}, with version ${version} in use`

/** Lists the stored parts of a body. Its other fields were validated but not stored. */
export function stateAndKept(preset: Preset): string {
  const { config, system_prompt } = preset.designated_version
  const kept = [...Object.keys(config), ...(system_prompt === null ? [] : ['system prompt'])]
  return `${state(preset)}; stored: ${kept.map(printable).join(', ')}`
}

export function drawList({ data, total_count }: OperationResponse<'presets.list'>, { options }: Arguments): string {
  const drawn = table(
    data,
    [
      ['SLUG', (row) => row.slug],
      ['NAME', (row) => row.name],
      ['STATE', (row) => row.status, stateTone],
      ['DESCRIPTION', (row) => row.description],
      ['UPDATED (UTC)', (row) => moment(row.updated_at)],
      ['MANAGED BY', (row) => row.managed_by],
      ['LAST USED (UTC)', (row) => moment(row.last_used_at ?? null)],
    ],
    'No presets. To create one: latchkey presets save my-preset body.json',
  )
  return withRest(drawn, data.length, total_count, options)
}

export function drawVersions(
  { data, total_count, designated_version }: OperationResponse<'presets.versions'>,
  { options }: Arguments,
): string {
  const drawn = table(
    data,
    [
      ['VERSION', (row) => row.version],
      ['', (row) => (row.version === designated_version ? 'in use' : '')],
      ['CREATED (UTC)', (row) => moment(row.created_at)],
      ['BY', (row) => row.creator_id],
      ['MODEL', modelOf],
      ['SETTINGS', (row) => Object.keys(row.config).join(' ')],
    ],
    'No versions',
  )
  return withRest(drawn, data.length, total_count, options)
}

function modelOf({ config }: Version): unknown {
  const { model }: { model?: unknown } = config
  return model
}

function withRest(drawn: string, shown: number, total: number, { offset }: Arguments['options']): string {
  const end = Number(offset ?? 0) + shown
  return end < total && shown > 0 ? `${drawn}\n${total - end} more: --offset ${end}` : drawn
}

/** Comparing texts in which every line differs takes minutes. */
const diffMillisecondsMax = 3_000

export function drawDiff(
  { from, to, changes }: OperationResponse<'presets.diff'>,
  _given?: Arguments,
  timeout = diffMillisecondsMax,
): string {
  if (changes.length === 0) return `${from.preset_version} and ${to.preset_version} are identical`
  const terminal = readTerminal()
  const [one, other] = [from, to].map((found) => `${showContent(found)}\n`)
  const patch = createTwoFilesPatch(
    from.preset_version,
    to.preset_version,
    one ?? '',
    other ?? '',
    undefined,
    undefined,
    {
      timeout,
    },
  ) as string | undefined
  if (patch === undefined)
    return `${from.preset_version} and ${to.preset_version} differ in too many lines to show. They differ in: ${changes.map(({ field }) => field).join(', ')}. See both with --json`
  return patch
    .split('\n')
    .filter((line) => !/^(=+|\\ No newline.*|)$/.test(line))
    .map((line) => paint(line, diffTones[line[0] ?? ''], terminal))
    .join('\n')
}

const diffTones: Partial<Record<string, Tone>> = { '+': 'green', '-': 'red', '@': 'cyan' }
