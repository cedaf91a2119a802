// Amounts of a budget in words, such as `500 USD` or `1 request`.

export type AmountUnit = 'usd' | 'tokens' | 'requests'

/** `amount` in the unit, as it is shown. */
export function amountText(amount: number | string, unit: AmountUnit): string {
  if (unit === 'usd') return `${amount} USD`
  return `${amount} ${Number(amount) === 1 ? unit.slice(0, -1) : unit}`
}
