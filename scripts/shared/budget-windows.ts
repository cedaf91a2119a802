// The windows of a budget on the command line, such as `month=20usd` or `day=5usd,1000requests`, and as text.
import { InvalidArgumentError } from 'commander'
import { Fault } from '../../src/fault.ts'
import { amountText } from '../../src/values/amount-text.ts'
import { readJsonFile } from './input-files.ts'
import { dollarsAlike } from './render.ts'

type Window = { per: string; usd?: number; tokens?: number; requests?: number }

const amountPattern = /^(\d+(?:\.\d+)?)(usd|tokens|requests)$/

/** @throws Fault `usage` */
export function windowsFrom(texts: readonly string[]): Window[] {
  return texts.map((text) => {
    const [per = '', amounts = ''] = text.split('=', 2)
    const read = readAmounts(amounts)
    if (per === '' || read === undefined)
      throw new Fault(
        'usage',
        `${JSON.stringify(text)} is not a valid value for --windows: use PERIOD=AMOUNT, such as month=20usd or day=5usd,1000requests`,
      )
    return { per, ...read }
  })
}

const overridePattern = /^(.+):((?:hour|day|week|month|lifetime)=.+)$/

/**
 * Reads words such as `456789:month=50usd`, or one word that names a JSON file.
 * @throws Fault `usage`
 */
export function overridesFrom(texts: readonly string[]): unknown {
  const [first = '', ...more] = texts
  if (more.length === 0 && !overridePattern.test(first)) return readJsonFile(first)
  const read = texts.map((text) => {
    const [, value = '', windows = ''] = overridePattern.exec(text) ?? []
    if (value !== '') return { value, windows: windowsFrom([windows]) }
    const rule = 'use VALUE:PERIOD=AMOUNT, such as 456789:month=50usd, or one JSON file'
    throw new Fault('usage', `${JSON.stringify(text)} is not a valid value for --overrides: ${rule}`)
  })
  const byValue = Map.groupBy(read, ({ value }) => value)
  return Object.fromEntries([...byValue].map(([value, of]) => [value, of.flatMap(({ windows }) => windows)]))
}

export type Amounts = Omit<Window, 'per'>

/** Parses an option such as `5usd,1000requests`. */
export function amountsFrom(text: string): Amounts {
  const read = readAmounts(text)
  if (read === undefined) throw new InvalidArgumentError('use amounts such as 10usd or 5usd,1000requests')
  return read
}

function readAmounts(text: string): Amounts | undefined {
  const read = text.split(',').map((amount) => amountPattern.exec(amount.trim().toLowerCase()))
  if (read.some((found) => found === null)) return undefined
  return Object.fromEntries(read.map((found) => [found?.[2], Number(found?.[1])]))
}

/** The windows of a budget in one line. */
export function windowsText(windows: readonly Window[], money?: (usd: number) => string): string {
  return windows.map(({ per, ...amounts }) => `${per} ${amountsText(amounts, money)}`).join('; ')
}

export function amountsText(
  { usd, tokens, requests }: Amounts,
  money: (usd: number) => string = dollarsAlike([], usd === undefined ? [] : [usd]),
): string {
  const parts = [
    usd === undefined ? [] : [`${money(usd)} USD`],
    tokens === undefined ? [] : [amountText(tokens, 'tokens')],
    requests === undefined ? [] : [amountText(requests, 'requests')],
  ]
  return parts.flat().join(', ')
}
