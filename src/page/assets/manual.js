// The manual, the same texts as `latchkey help`. Other views read from it: `readTopic(name)`, and `whatToDo(reason)` for
// the line about a refusal.
/** @import { View } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { inline, markdown, tableRows } from './markdown.js'
import { loading } from './parts.js'
import { href } from './router.js'

/** @type {Map<string, Promise<string>>} */
const read = new Map()

/** A topic as Markdown; an empty name gives the names of all, one per line. @param {string} name @returns {Promise<string>} */
export function readTopic(name) {
  const known = read.get(name)
  if (known !== undefined) return known
  const reading = fetch(name === '' ? 'manual' : `manual/${encodeURIComponent(name)}`).then((response) => {
    if (!response.ok) throw new Error('The manual has no such topic; choose one from the list')
    return response.text()
  })
  read.set(name, reading)
  reading.catch(() => read.delete(name))
  return reading
}

/** @type {Map<string, string>} */
let help = new Map()

/** Loads what `whatToDo` reads. */
export async function readHelp() {
  const rows = tableRows(await readTopic('troubleshooting'))
  help = new Map(
    rows.flatMap(([reason = '', , what = '']) => (what === '' ? [] : [[reason.replaceAll('`', ''), what]])),
  )
}

/** What to do about a reason of the audit log. @param {string | null | undefined} reason */
export function whatToDo(reason) {
  const text = help.get(reason ?? '')
  return text === undefined ? '' : html`<span class="todo">${inline(text)}</span>`
}

/** @type {View} */
export const view = (page) => {
  const name = page.path[0] ?? 'recipes'
  let [text, names] = ['', /** @type {string[]} */ ([])]
  page.poll(async () => {
    ;[text, names] = await Promise.all([readTopic(name), readTopic('').then((all) => all.split('\n'))])
    page.title(/^# (.+)/.exec(text)?.[1] ?? name)
  }, 86_400)
  return () =>
    text === ''
      ? loading()
      : html`<div class="manual">
          <nav aria-label="Topics"><ul>
            ${names.map((each) => html`<li><a href=${href(['manual', each])} aria-current=${each === name ? 'page' : nothing}>${each}</a></li>`)}
          </ul></nav>
          <article>${markdown(text)}</article>
        </div>`
}
