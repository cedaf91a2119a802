// A trail as a page without scripts, which any browser opens from a folder. It shows only what was checked, and `audit verify` compares the
// file with what this makes of the proofs: once a release has made trails, another look is another format (trail-format.ts).
import type { ProvenExchange, ProvenRequest, Totals, TrailCheck } from './trail.ts'
import { describeChange, type ProvenChange } from './trail-changes.ts'
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

/** A part of the page, and the file or folder that it shows. */
type Part = { of: string; html: string }

export function renderTrail(head: TrailHead, check: TrailCheck): string {
  return partsOf(head, check)
    .map(({ html }) => html)
    .join('')
}

/** Names the files and folders that a page does not show as they are; none if it shows all. */
export function findStaleParts(page: string, head: TrailHead, check: TrailCheck): string[] {
  if (page === renderTrail(head, check)) return []
  const stale = partsOf(head, check).filter(({ of, html }) => of !== allParts && !page.includes(html))
  return stale.length === 0 ? [allParts] : [...new Set(stale.map(({ of }) => of))]
}

const allParts = 'the folder'

function partsOf(head: TrailHead, check: TrailCheck): Part[] {
  const { exchanges, requests, names, keyDays, changes } = check
  const name = (id: string | null) => (id === null ? '' : (names.get(id) ?? id))
  return [
    { of: 'trail.json', html: renderHead(head) },
    { of: allParts, html: renderFacts(check) },
    {
      of: 'exchanges/',
      html: section(
        'Exchanges',
        ['Time (UTC)', 'Outcome', 'Policy', 'Key', 'Access token', 'Proof'],
        exchanges.map((row) => exchangeCells(row, name)),
      ),
    },
    {
      of: 'requests.ndjson',
      html: section(
        'Requests',
        ['Time (UTC)', 'Model', 'Status', 'Tokens', 'Cost', 'Key', 'Access token', 'Proven'],
        requests.map((row) => requestCells(row, name)),
      ),
    },
    {
      of: 'changes/',
      html: section(
        'Changes',
        ['Time (UTC)', 'What', 'By', 'Operation', 'In words', 'Proof'],
        changes.map((change) => changeCells(change, name)),
      ),
    },
    {
      of: 'days/',
      html: section(
        'Is something missing?',
        ['Day', 'Key', 'Requests in this trail', 'Requests of the key'],
        keyDays.map(({ day, key_id, shown, all }) => [
          escapeHtml(day),
          escapeHtml(name(key_id)),
          String(shown),
          String(all),
        ]),
        'A trail shows what is in the log, and cannot show that nothing was left out. The totals of a day say how many requests a key made in all.',
        'No day with a request of this trail has ended yet.',
      ),
    },
    { of: allParts, html: '</html>\n' },
  ]
}

function renderHead(head: TrailHead): string {
  const title = `Audit trail of ${escapeHtml(head.subject)}`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${style}
</style>
<h1>${title}</h1>
<p>This page proves nothing. Check the folder that it is in, as <a href="HOW-TO-CHECK.txt">HOW-TO-CHECK.txt</a> says.</p>
${facts([
  ['Subject', head.subject],
  ['Issuer', head.issuer_url],
  ['Time', `${head.since ?? 'the beginning'} to ${head.until ?? head.made_at}`],
  ['Made at', head.made_at],
  ['Log', head.origin],
])}`
}

function renderFacts({ size, exchanges, proven, open, changes }: TrailCheck): string {
  const refused = exchanges.filter(({ outcome }) => outcome === 'refused').length
  return facts([
    ['Checkpoint', `${size} entries`],
    ['Exchanges', `${exchanges.length}, of which ${refused} refused`],
    ['Proven', totalsOf(proven)],
    ...(open.requests > 0 ? [['Not proven yet', totalsOf(open)] as [string, string]] : []),
    ['Changes', `${changes.length} of the issuer, its policies, their keys and prices`],
  ])
}

function totalsOf({ requests, tokens, nanodollars }: Totals): string {
  return `${requests} ${requests === 1 ? 'request' : 'requests'}, ${tokens} tokens, ${dollarsOf(nanodollars)}`
}

function facts(list: [term: string, text: string][]): string {
  return `<dl>\n${list.map(([term, text]) => `<dt>${term}</dt><dd>${escapeHtml(text)}</dd>`).join('\n')}\n</dl>\n`
}

function section(title: string, heads: string[], rows: string[][], text = '', none?: string): string {
  return `<h2>${title}</h2>\n${text === '' ? '' : `<p>${text}</p>\n`}${table(heads, rows, none)}\n`
}

function changeCells(change: ProvenChange, name: Name): string[] {
  const { at, kind, target_id: id, by, operation, file } = change
  return [
    escapeHtml(at),
    escapeHtml(`${kind.replace('_', ' ')} ${name(id)}`),
    ...[escapeHtml(by), escapeHtml(operation), escapeHtml(describeChange(change, name))],
    `<a href="${escapeHtml(file)}"><code>${change.index}</code></a>`,
  ]
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
