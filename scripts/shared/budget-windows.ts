// The windows of a budget on the command line, such as `month=20usd` or `day=5usd,1000requests`, and as text.
import { Fault } from '../../src/fault.ts'
import { dollars } from './render.ts'

type Window = { per: string; usd?: number; tokens?: number; requests?: number }

const amountText = /^(\d+(?:\.\d+)?)(usd|tokens|requests)$/

/** @throws Fault `usage` */
export function windowsFrom(texts: readonly string[]): Window[] {
  return texts.map((text) => {
    const [per = '', amounts = ''] = text.split('=', 2)
    const read = amounts.split(',').map((amount) => amountText.exec(amount.trim().toLowerCase()))
    if (per === '' || read.some((found) => found === null))
      throw new Fault(
        'usage',
        `${JSON.stringify(text)} is not a valid value for --windows: use PERIOD=AMOUNT, such as month=20usd or day=5usd,1000requests`,
      )
    return { per, ...Object.fromEntries(read.map((found) => [found?.[2], Number(found?.[1])])) }
  })
}

/** The windows of a budget in one line. */
export function windowsText(windows: readonly Window[]): string {
  return windows.map(({ per, ...amounts }) => `${per} ${amountsText(amounts)}`).join('; ')
}

export function amountsText({ usd, tokens, requests }: Omit<Window, 'per'>): string {
  const parts = [
    usd === undefined ? [] : [`${dollars(usd)} USD`],
    tokens === undefined ? [] : [`${tokens} tokens`],
    requests === undefined ? [] : [`${requests} requests`],
  ]
  return parts.flat().join(', ')
}
