// What the linter finds in policies: a badge for a list, and the findings with their witness.
/** @import { Finding, Policy } from '../../admin/transport/response-types.ts' */
/** @import { Content } from '../types.ts' */
import { send } from './client.js'
import { html, nothing } from './lit-html.js'
import { inline } from './markdown.js'
import { badge, code, json, stored } from './parts.js'
import { keyed } from './table.js'
import { withoutCommands } from './words.js'

/** By policy and time of its last change. @type {Map<string, Finding[]>} */
const known = new Map()
/** What the linter reads of issuers has changed. */
export const forgetFindings = () => known.clear()

/** The findings of saved policies by id: one request for those that are not known yet. @param {readonly Policy[]} policies */
export async function lintOf(policies) {
  const keyOf = (/** @type {Policy} */ { id, updated_at }) => id + updated_at
  const unknown = policies.filter((policy) => !known.has(keyOf(policy))).slice(0, 100)
  if (unknown.length > 0) {
    const ids = unknown.map(({ id }) => id)
    // Of a policy that was deleted meanwhile, the badges stay empty.
    const { data } = await send('POST', '/workload-identity/policies/lint', { policies: ids }).catch(() => ({
      data: [],
    }))
    unknown.forEach((policy, index) => {
      if (data[index] !== undefined) known.set(keyOf(policy), data[index].findings)
    })
  }
  return new Map(
    policies.flatMap((policy) => {
      const findings = known.get(keyOf(policy))
      return findings === undefined ? [] : [/** @type {const} */ ([policy.id, findings])]
    }),
  )
}

/** @param {Finding} finding */
export const isBlocking = ({ level, allowed_because }) => level === 'blocking' && allowed_because === undefined

/** @param {Finding[] | undefined} findings */
export function lintBadge(findings) {
  if (findings === undefined) return nothing
  const title = findings.map(({ rule }) => rule).join(', ')
  const open = findings.filter(({ allowed_because, level }) => allowed_because === undefined && level !== 'note')
  if (open.some(isBlocking)) return badge('bad', 'too wide', title)
  if (open.length > 0) return badge('warn', `${open.length} ${open.length === 1 ? 'warning' : 'warnings'}`, title)
  return badge(
    'ok',
    findings.some(({ allowed_because }) => allowed_because !== undefined) ? 'allowed' : 'narrow',
    title,
  )
}

/** @param {readonly Finding[]} findings @param {(finding: Finding) => Content} [more] below each */
export function findingList(findings, more = () => nothing) {
  if (findings.length === 0) return html`<p>${badge('ok', 'narrow')} The linter found no stranger who could pass.</p>`
  return html`<ul class="plain">${keyed(
    findings,
    ({ rule }) => rule,
    (finding) => {
      const { rule, level, message, fix, detail, example, witness, allowed_because: because } = finding
      const token = example ?? witness
      return html`<li class="stack">
      <div class="actions">${because !== undefined ? badge('info', 'allowed') : badge(level === 'blocking' ? 'bad' : level === 'warning' ? 'warn' : 'info', level)}
        <a class="mono" href="#/manual/linter">${rule}</a></div>
      <p>${inline(message)} ${detail === undefined ? nothing : html`${stored(detail, 2_000)}`}</p>
      <p class="muted">${because === undefined ? inline(withoutCommands(fix)) : html`Allowed because: ${stored(because, 2_000)}`}</p>
      ${token === undefined ? nothing : html`<details><summary>A token that would pass</summary>${code(json(token), 'token that would pass')}</details>`}
      ${more(finding)}
    </li>`
    },
  )}</ul>`
}
