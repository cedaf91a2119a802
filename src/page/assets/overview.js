// Overview: what needs attention, exchanges over time with why they were refused, and requests and spend. Three requests for data.
/** @import { ExchangeCounts, DoctorFinding, UsageReport } from '../../admin/transport/response-types.ts' */
/** @import { Page, View } from '../types.ts' */
import { barChart } from './chart.js'
import { get } from './client.js'
import { html, nothing } from './lit-html.js'
import { badge, callout, count, heading, loading, money, select, spendText, stored } from './parts.js'
import { planNotice } from './plan.js'
import { href } from './router.js'
import { table } from './table.js'

const tones = {
  error: /** @type {const} */ ('bad'),
  warning: /** @type {const} */ ('warn'),
  note: /** @type {const} */ ('info'),
}

/** @param {string} day such as 2026-11-22 */
export const dayLabel = (day) =>
  new Date(day).toLocaleDateString(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })

/** @param {string} at */
const hourLabel = (at) => new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })

/** Every day from the first to the last. @param {{ since: string, until: string }} report */
export function daysBetween({ since, until }) {
  const [first, last] = [Date.parse(since), Date.parse(until)]
  return Array.from({ length: (last - first) / 86_400_000 + 1 }, (_, index) =>
    new Date(first + index * 86_400_000).toISOString().slice(0, 10),
  )
}

/** @type {View} */
export const view = (page) => {
  /** @type {{ findings?: DoctorFinding[], counts?: ExchangeCounts, usage?: UsageReport }} */
  const shown = {}
  // Each part appears when it arrives, and rests as long as it is good for.
  page.poll(async () => {
    shown.counts = await get('/workload-identity/audit/counts', { per: page.query.per })
  }, 30)
  page.poll(async () => {
    shown.usage = await get('/usage', { by: 'day' })
  }, 60)
  page.poll(async () => {
    shown.findings = (await get('/workload-identity/findings', { installation: true })).data.findings
  }, 120)
  const choose = (/** @type {string} */ per) => {
    page.setQuery({ per: per === 'hour' ? '' : per })
    void page.refresh()
  }
  return () => {
    const { findings, counts, usage } = shown
    const span = counts?.per === 'day' ? '30 days' : '24 hours'
    const sum = (/** @type {'issued' | 'refused'} */ name) =>
      counts && count(counts.data.reduce((all, each) => all + each[name], 0))
    const isUnused = counts?.data.every(({ issued }) => issued === 0)
    return html`${planNotice(page)}
      ${isUnused ? callout('info', html`No token was issued in the last ${span}. <a href="#/start">Get started</a> shows the three steps to one.`) : nothing}
      <dl class="tiles">
        ${tile('Tokens issued', sum('issued'), span)} ${tile('Exchanges refused', sum('refused'), span)}
        ${tile('Inference requests', usage && count(usage.total.requests), '30 days')} ${tile('Spend', usage && spendText(usage.total), '30 days')}
      </dl>
      <section class="card">${heading('Needs attention')}${findings === undefined ? loading() : attention(findings)}</section>
      <section class="card">
        ${heading(`Exchanges in the last ${span}`, timeSelect(page, choose))} ${counts === undefined ? loading() : exchanges(counts)}
      </section>
      <div class="columns even">
        <section class="card">${usage === undefined ? loading() : ofDays('Requests per day', usage, 'requests', count)}</section>
        <section class="card">${usage === undefined ? loading() : ofDays('Spend per day', usage, 'cost', money)}</section>
      </div>`
  }
}

/** @param {Page} page @param {(per: string) => void} choose */
function timeSelect(page, choose) {
  const options = /** @type {[string, string][]} */ ([
    ['hour', 'Last 24 hours'],
    ['day', 'Last 30 days'],
  ])
  return select('Time', page.query.per ?? 'hour', options, choose)
}

/** @param {ExchangeCounts} counts */
function exchanges(counts) {
  return html`${barChart({
    label: `Issued and refused per ${counts.per}`,
    labels: counts.data.map(({ at }) => (counts.per === 'hour' ? hourLabel(at) : dayLabel(at))),
    series: [
      { name: 'Issued', tone: 'ok', values: counts.data.map(({ issued }) => issued) },
      { name: 'Refused', tone: 'bad', values: counts.data.map(({ refused }) => refused) },
    ],
  })}
  ${counts.counted_since > counts.since ? callout('info', 'Older exchanges of this time are too many to count.') : nothing} ${reasons(counts)}`
}

/** @param {string} name @param {string | undefined} value @param {string} span */
function tile(name, value, span) {
  return html`<div><dt>${name}</dt><dd>${value ?? '…'}</dd><dd class="muted small">in the last ${span}</dd></div>`
}

/** Where the page has what a finding is about. @param {DoctorFinding} finding */
function placeOf({ area, names }) {
  const place = area === 'budgets' ? 'keys' : area
  return !['keys', 'policies', 'issuers', 'upstreams'].includes(place)
    ? nothing
    : html`. Here: <a href=${href([place], names.length === 1 ? { search: names[0] ?? '' } : {})}>${place === 'upstreams' ? 'servers' : place}</a>`
}

/** @param {DoctorFinding[]} findings */
function attention(findings) {
  if (findings.length === 0) return html`<p>${badge('ok', 'all fine')} Nothing needs attention.</p>`
  return html`<ul class="plain">
    ${findings.map(
      (finding) =>
        html`<li><p>${badge(tones[finding.level], finding.level)} ${stored(finding.message, 1_000)}.</p><p class="muted">To do: ${stored(finding.action, 1_000)}${placeOf(finding)}</p></li>`,
    )}
  </ul>`
}

/** @param {ExchangeCounts} counts */
function reasons(counts) {
  /** @type {Map<string, number>} */
  const sums = new Map()
  for (const { reasons } of counts.data)
    for (const [reason, number] of Object.entries(reasons)) sums.set(reason, (sums.get(reason) ?? 0) + number)
  return table({
    label: 'Refusals by reason',
    columns: [
      {
        title: 'Refused because',
        isHeader: true,
        cell: ([reason]) => html`<a class="mono" href=${href(['exchanges'], { reason })}>${reason}</a>`,
      },
      { title: 'Exchanges', align: 'end', cell: ([, number]) => count(number) },
    ],
    rows: [...sums].sort(([, one], [, other]) => other - one),
    key: ([reason]) => reason,
    empty: html`<p class="muted">No exchange was refused in this time.</p>`,
  })
}

/** @param {string} label @param {UsageReport} usage @param {'requests' | 'cost'} name @param {(value: number) => string} format */
function ofDays(label, usage, name, format) {
  const days = daysBetween(usage)
  const known = new Map(usage.data.map((row) => [row.day, row[name]]))
  return barChart({
    label,
    labels: days.map(dayLabel),
    series: [{ name: label.split(' ')[0] ?? '', values: days.map((day) => known.get(day) ?? 0) }],
    format,
    width: 400,
  })
}
