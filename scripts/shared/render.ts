// Formats responses for people, as records and parts of lines. It makes external text safe for a terminal.

/** Escapes control and invisible characters, so that a claim cannot move the cursor or hide. */
export function printable(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return String(value).replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escaped)
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  return code > 0xffff ? `\\u{${hex}}` : `\\u${hex.padStart(4, '0')}`
}

/** Draws one `name  value` line per field. */
export function record(fields: Record<string, unknown>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`)
    .join('\n')
}

const barCharacters = 24

/** Draws a bar whose length is proportional to the value. */
export function bar(value: number, longest: number): string {
  return longest > 0 ? '█'.repeat(Math.round((value / longest) * barCharacters)) : ''
}

/** Formats an amount with enough digits to distinguish it from zero, never as `7.5e-7`. */
export function dollars(amount: number): string {
  return amount >= 1 ? amount.toFixed(2) : plainNumber(Number(amount.toPrecision(3)))
}

function plainNumber(amount: number): string {
  return amount.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 20 })
}

const [centDigits, leastDigits] = [2, 6]

/**
 * Formats amounts that stand below each other alike: with cents, or with as many digits as the smallest one needs to differ from zero. `exact`:
 * those of which no digit may be lost.
 */
export function dollarsAlike(amounts: readonly number[], exact: readonly number[] = []): (amount: number) => string {
  const smallest = Math.min(...amounts.filter((amount) => amount > 0))
  const forSmallest = smallest === Infinity || smallest >= 0.01 ? centDigits : smallest >= 0.0001 ? 4 : leastDigits
  const digits = Math.max(forSmallest, ...exact.map((amount) => plainNumber(amount).split('.')[1]?.length ?? 0))
  const least = 10 ** -digits
  return (amount) => (amount > 0 && amount < least ? `<${least.toFixed(digits)}` : amount.toFixed(digits))
}

/** What a spreadsheet runs at the start of a cell, also where it ends cells at other separators or ignores quotes. */
const formulaStart = /(?<=(?:^|[,;\t\r\n])[\s"']*)[=+\-@\t\r＝＋－＠]/g

/**
 * Formats rows as CSV (RFC 4180) with a header line. Text that a spreadsheet would run as a formula gets a
 * quote before it.
 */
export function csv(rows: Record<string, unknown>[]): string {
  const names = Object.keys(rows[0] ?? {})
  const cell = (value: unknown) => {
    const text = value === null || value === undefined ? '' : String(value)
    const safe = typeof value === 'string' ? text.replaceAll(formulaStart, "'$&") : text
    return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((line) => line.map(cell).join(','))
    .join('\n')
}

/** Formats a time as `2026-11-21 09:30:00`, in UTC. */
export function moment(time: string | null): string {
  return time === null ? '-' : time.slice(0, 19).replace('T', ' ')
}

/** A number with its noun, such as `1 request` or `2 entries`. */
export function counted(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : nouns}`
}

/** Joins the first few texts of a list and adds the number of the others. */
export function few(texts: string[], shownMax: number): string {
  const more = texts.length - shownMax
  return texts.slice(0, shownMax).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** Adds the policies in `policies_affected` to the text of a response. */
export function withAffected(
  text: string,
  { policies_affected: names = [] }: { policies_affected?: string[] },
): string {
  if (names.length === 0) return text
  const [what, has] = names.length === 1 ? ['policy', 'has'] : ['policies', 'have']
  return `${text}\n${names.length} ${what} ${has} become inactive: ${few(names.map(printable), 5)}`
}

/** The line of a record that names the owner of the configuration document that made it. */
export function managedBy({ managed_by }: { managed_by?: string | null }): Record<string, string> {
  return (managed_by ?? null) === null ? {} : { 'managed by': String(managed_by) }
}

/** The lines of a record that show when something last worked, and when and why it was last refused. */
export function lastUse(row: {
  last_used_at?: string | null
  last_refused_at?: string | null
  last_refused_reason?: string | null
}): Record<string, string> {
  const { last_used_at: usedAt, last_refused_at: refusedAt, last_refused_reason: reason } = row
  return {
    ...(usedAt === undefined ? {} : { 'last used (UTC)': usedAt === null ? 'never' : moment(usedAt) }),
    ...(refusedAt === undefined || refusedAt === null
      ? {}
      : { 'last refused (UTC)': `${moment(refusedAt)} ${String(reason).replaceAll('_', ' ')}` }),
  }
}
