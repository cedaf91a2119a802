// Ready-to-paste lines for a policy: the client recipes of the manual, with the addresses and ids filled in.
/** @import { Policy } from '../../admin/transport/response-types.ts' */
/** @import { Block, Page } from '../types.ts' */
import { apiUrl } from './client.js'
import { choice } from './form.js'
import { html } from './lit-html.js'
import { readTopic } from './manual.js'
import { markdown } from './markdown.js'
import { code, loading } from './parts.js'
import { guessPlatform, linesForWorkload, platforms } from './platforms.js'

/** The names of the choices, with the headings of the manual. @type {Record<string, string>} */
const headings = {
  curl: 'curl',
  ...Object.fromEntries(
    Object.values(platforms).flatMap(({ recipe }) => (recipe === undefined ? [] : [[recipe, recipe]])),
  ),
  JavaScript: 'JavaScript: `openai`',
  Python: 'Python: `openai`',
  'Claude Code': 'Claude Code',
  'Codex CLI': 'Codex CLI',
}
const withScript = ['Claude Code', 'Codex CLI']

/** @type {Block[]} */
let manual = []

/** @param {Page} page @param {Pick<Policy, 'id' | 'audience' | 'issuer_url'>} policy */
export function recipes(page, { id, audience, issuer_url: issuer }) {
  if (manual.length === 0)
    void page.run(async () => {
      manual = await readTopic('recipes')
    })
  // It goes into lines for a shell.
  const safeAudience = /^[\w.:/@-]+$/.test(audience) ? audience : 'AUDIENCE'
  const base = apiUrl('')
  const chosen = page.query.client ?? platforms[guessPlatform(issuer)]?.recipe ?? 'curl'
  const heading = headings[chosen] ?? 'curl'
  const fill = (/** @type {string} */ text) =>
    text
      .replaceAll(`${example}/v1`, base)
      .replaceAll(`"ANTHROPIC_BASE_URL": "${example}"`, `"ANTHROPIC_BASE_URL": "${base.replace(/\/v1$/, '')}"`)
      .replaceAll(example, () => safeAudience)
      .replaceAll('audience: latchkey', () => `audience: ${safeAudience}`)
      .replace(/the id of the policy(?=\n|$)|\$\{\{ vars\.LATCHKEY_POLICY \}\}/g, id)
  const shown = [
    ...(withScript.includes(chosen) ? sectionOf('Print a token for other programs') : []),
    ...linesForWorkload(sectionOf(heading)),
  ]
  const filled = shown.map((block) => ('text' in block ? { ...block, text: fill(block.text) } : block))
  return html`${choice({
    label: 'Where it runs',
    name: 'client',
    value: chosen,
    options: Object.keys(headings).map((name) => [name, name]),
    onInput: (client) => page.setQuery({ client }),
  })}
  ${code(`export LATCHKEY=${base}\nexport POLICY=${id}`, 'variables')}
  ${manual.length === 0 ? loading() : markdown(filled)}`
}

/** The blocks of the manual below a heading of the second level. @param {string} heading */
function sectionOf(heading) {
  const isEnd = (/** @type {Block} */ block) => block.kind === 'heading' && block.level <= 2
  const start = manual.findIndex((block) => isEnd(block) && 'text' in block && block.text === heading) + 1
  const length = manual.slice(start).findIndex(isEnd)
  return start === 0 ? [] : manual.slice(start, length < 0 ? undefined : start + length)
}

/** The address in the manual that stands for the server's. */
const example = `https:/${'/llm.example.com'}`
