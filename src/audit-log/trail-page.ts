// A trail as a page without scripts, which any browser opens from a folder. It shows only what was checked, and `audit verify` compares the
// file with what this makes of the proofs: once a release has made trails, another look is another format (trail-format.ts).
import type { ProvenExchange, ProvenRequest, TrailCheck } from './trail.ts'
import type { TrailHead } from './trail-format.ts'

const style = `
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
  h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
  .number { text-align: right; }
  dt { opacity: .7; } dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dd { margin: 0; }
  code { font-size: .9em; overflow-wrap: anywhere; }
  .wide { overflow-x: auto; }`

export function renderTrail(head: TrailHead, check: TrailCheck): string {
  const { exchanges, requests, names, proven, open, keyDays, size, changes } = check
  const name = (id: string | null) => (id === null ? '' : (names.get(id) ?? id))
  const refused = exchanges.filter(({ outcome }) => outcome === 'refused').length
  const facts: [string, string][] = [
    ['Subject', head.subject],
    ['Issuer', head.issuer_url],
    ['Time', `${head.since ?? 'the beginning'} to ${head.until ?? head.made_at}`],
    ['Log', head.origin],
    ['Checkpoint', `${size} entries`],
    ['Exchanges', `${exchanges.length}, of which ${refused} refused`],
    ['Requests', `${proven.requests} in closed days${open > 0 ? `, and ${open} in days that are still open` : ''}`],
    ['Tokens', String(proven.tokens)],
    ['Cost', dollarsOf(proven.nanodollars)],
    ['Changes', `${changes} of the issuer, its policies and their keys`],
  ]
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Audit trail of ${escapeHtml(head.subject)}</title>
<style>${style}
</style>
<h1>Audit trail of ${escapeHtml(head.subject)}</h1>
<p>This page proves nothing. Check the folder that it is in, as <a href="HOW-TO-CHECK.txt">HOW-TO-CHECK.txt</a> says.</p>
<dl>
${facts.map(([term, text]) => `<dt>${term}</dt><dd>${escapeHtml(text)}</dd>`).join('\n')}
</dl>
<h2>Exchanges</h2>
${table(
  ['Time (UTC)', 'Outcome', 'Policy', 'Key', 'Access token', 'Proof'],
  exchanges.map((row) => exchangeCells(row, name)),
)}
<h2>Requests</h2>
${table(
  ['Time (UTC)', 'Model', 'Status', 'Tokens', 'Cost', 'Key', 'Access token', 'Proven'],
  requests.map((row) => requestCells(row, name)),
)}
<h2>Is something missing?</h2>
<p>A trail shows what is in the log, and cannot show that nothing was left out. The totals of a day say how many requests a key made in all.</p>
${table(
  ['Day', 'Key', 'Requests in this trail', 'Requests of the key'],
  keyDays.map(({ day, key_id, shown, all }) => [escapeHtml(day), escapeHtml(name(key_id)), String(shown), String(all)]),
  'No day with a request of this trail has ended yet.',
)}
</html>
`
}

type Name = (id: string | null) => string

function exchangeCells(row: ProvenExchange, name: Name): string[] {
  const { at, outcome, reason, policy_id, key_id, access_token_id, request_id } = row
  const file = escapeHtml(exchangeFileOf(row))
  return [
    ...[
      escapeHtml(at),
      escapeHtml(reason === null ? outcome : `${outcome}: ${reason}`),
      escapeHtml(name(policy_id)),
      escapeHtml(name(key_id)),
    ],
    access_token_id === null ? '' : `<code id="${escapeHtml(access_token_id)}">${escapeHtml(access_token_id)}</code>`,
    `<a href="${file}"><code>${escapeHtml(request_id)}</code></a>`,
  ]
}

function requestCells(row: ProvenRequest, name: Name): string[] {
  const { at, model, status, total_tokens, cost_nanodollars, key_id, access_token_id, day, isOfExchange } = row
  const proven = day === null ? 'not yet' : 'yes'
  return [
    ...[escapeHtml(new Date(at).toISOString()), escapeHtml(model ?? ''), String(status), String(total_tokens ?? '')],
    cost_nanodollars === null ? 'no price' : dollarsOf(cost_nanodollars),
    ...[
      escapeHtml(name(key_id)),
      isOfExchange && access_token_id !== null
        ? `<a href="#${escapeHtml(access_token_id)}"><code>${escapeHtml(access_token_id)}</code></a>`
        : `<code>${escapeHtml(access_token_id ?? '')}</code> (exchange not in this trail)`,
    ],
    proven,
  ]
}

/** Where the folder has the proof of an exchange. */
export function exchangeFileOf({ index, request_id }: Pick<ProvenExchange, 'index' | 'request_id'>): string {
  return `exchanges/${index}-${request_id.replaceAll(/[^0-9a-zA-Z-]/g, '_')}.tlog-proof`
}

function table(heads: string[], rows: string[][], none = 'None.'): string {
  if (rows.length === 0) return `<p>${none}</p>`
  const head = `<tr>${heads.map((text) => `<th>${text}</th>`).join('')}</tr>`
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('\n')
  return `<div class="wide"><table>\n${head}\n${body}\n</table></div>`
}

/** Exactly: nanodollars are integers. */
function dollarsOf(nanodollars: number): string {
  const text = String(nanodollars).padStart(10, '0')
  return `$${text.slice(0, -9)}.${text.slice(-9).replace(/0{1,7}$/, '')}`
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? character)
}
