// `latchkey prices`: US dollars per million tokens and per unit of what has none, for inference servers that do not report a cost.
import type { Command } from 'commander'
import { priceFields } from '../src/admin/kinds/price.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { command, group, runAlone } from './shared/command-line.ts'
import { fieldInput, fieldOptions } from './shared/field-options.ts'
import { readJsonFile } from './shared/input-files.ts'
import { operationCommand } from './shared/operation-command.ts'
import { futureText } from './shared/option-values.ts'
import { dollars } from './shared/render.ts'
import { table } from './shared/table.ts'

type PriceRow = Omit<OperationResponse<'prices.list'>['data'][number], 'later' | 'updated_at'> & { from: string | null }

const draw = ({ data }: OperationResponse<'prices.list'>) =>
  table(
    data.flatMap(inOrder),
    [
      ['MODEL', (row) => row.model],
      ['FROM', (row) => row.from],
      ['PROMPT', (row) => dollars(row.prompt)],
      ['COMPLETION', (row) => dollars(row.completion)],
      ['CACHED PROMPT', (row) => (row.cached === null ? null : dollars(row.cached))],
      ['PER UNIT', perUnit],
      ['MOST OUTPUT', (row) => row.max_output_tokens],
      ['MANAGED BY', (row) => row.managed_by],
    ],
    "No prices. To set one: latchkey prices set 'meta/*' --prompt 0.15 --completion 0.6",
  )

/** What it is now or was first, and then what it changes to. */
function inOrder({ later, ...price }: OperationResponse<'prices.list'>['data'][number]): PriceRow[] {
  const none = { cached: null, character: null, image: null, audio_second: null }
  return [{ ...price, from: null }, ...(later ?? []).map((each) => ({ ...price, ...none, ...each }))]
}

function perUnit({ character, image, audio_second }: PriceRow): string | null {
  const parts: [price: number | null, unit: string][] = [
    [character, 'million characters'],
    [image, 'image'],
    [audio_second, 'second of audio'],
  ]
  const texts = parts.flatMap(([price, unit]) => (price === null ? [] : [`${dollars(price)} per ${unit}`]))
  return texts.length === 0 ? null : texts.join(', ')
}

export function pricesCommand(): Command {
  const set = command('set <model>', 'Set the price of a model, or of all models that match a pattern', [
    "prices set 'meta/*' --prompt 0.15 --completion 0.6",
    'prices set big --prompt 3 --completion 15 --cached 0.3',
    'prices set whisper --prompt 0 --completion 0 --audio-second 0.0001',
    'prices set big --prompt 2 --completion 10 --starts-at 2027-01-01',
  ])
  const changing = fieldOptions(set, priceFields, 'create').option(
    '--starts-at <date>',
    'when the price changes; until then it stays as it is (default: now)',
    futureText,
  )
  const importing = command('import <file>', 'Set all prices in a JSON file; if one is invalid, none is set', [
    'prices import prices.json',
  ]).addHelpText(
    'after',
    '\nThe file is a list: [{ "model": "meta/*", "prompt": 0.15, "completion": 0.6, "cached": 0.02 }]',
  )
  return group('prices', 'US dollars per million tokens, for inference servers that do not report a cost', [
    operationCommand(command('list', 'List the prices', ['prices list']), 'prices.list', () => ({}), draw),
    operationCommand(
      changing,
      'prices.set',
      ({ words, options }) => ({
        prices: [{ ...fieldInput(priceFields, options), model: words[0], from: options.startsAt }],
      }),
      draw,
    ),
    operationCommand(importing, 'prices.set', ({ words }) => ({ prices: readJsonFile(words[0] ?? '') }), draw),
    operationCommand(
      command('delete <model>', 'Delete a price; recorded requests keep their cost', ["prices delete 'meta/*'"]),
      'prices.remove',
      ({ words }) => ({ model: words[0] }),
      ({ model }) => `Deleted ${model}`,
    ),
  ])
}

if (import.meta.main) await runAlone(pricesCommand())
