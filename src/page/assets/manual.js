// The manual, the same texts as `latchkey help`. Other views read from it: `readTopic(name)`, and `whatToDo(reason)` for
// the line about a refusal.
/** @import { Block, View } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { inline, markdown } from './markdown.js'
import { loading } from './parts.js'
import { href } from './router.js'
import { withoutCommands } from './words.js'

/** @type {Map<string, Promise<any>>} */
const read = new Map()

/** @param {string} path @returns {Promise<any>} */
function readOnce(path) {
  const known = read.get(path)
  if (known !== undefined) return known
  const reading = fetch(path).then((response) => {
    if (!response.ok) throw new Error('The manual has no such topic; choose one from the list')
    return response.json()
  })
  read.set(path, reading)
  reading.catch(() => read.delete(path))
  return reading
}

/** The blocks of a topic. @param {string} name @returns {Promise<Block[]>} */
export function readTopic(name) {
  return readOnce(`manual/${encodeURIComponent(name)}`)
}

/** @type {Map<string, string>} */
let help = new Map()

/** Loads what `whatToDo` reads. */
export async function readHelp() {
  const blocks = await readTopic('troubleshooting')
  const rows = blocks.flatMap((block) => (block.kind === 'table' ? block.rows : []))
  help = new Map(
    rows.flatMap(([reason = '', , what = '']) => (what === '' ? [] : [[reason.replaceAll('`', ''), what]])),
  )
}

/** The reasons that `whatToDo` knows. */
export const knownReasons = () => [...help.keys()].toSorted()

/** What to do about a reason of the audit log. @param {string | null | undefined} reason */
export function whatToDo(reason) {
  const text = help.get(reason ?? '')
  return text === undefined ? '' : html`<span class="todo">${inline(withoutCommands(text))}</span>`
}

/** @type {View} */
export const view = (page) => {
  const name = page.path[0] ?? 'recipes'
  let [blocks, names] = [/** @type {Block[]} */ ([]), /** @type {string[]} */ ([])]
  page.poll(async () => {
    ;[blocks, names] = await Promise.all([readTopic(name), readOnce('manual')])
    const [title] = blocks
    page.title(title?.kind === 'heading' ? title.text : name)
  }, 86_400)
  return () =>
    blocks.length === 0
      ? loading()
      : html`<div class="manual">
          <nav aria-label="Topics"><ul>
            ${names.map((each) => html`<li><a href=${href(['manual', each])} aria-current=${each === name ? 'page' : nothing}>${each}</a></li>`)}
          </ul></nav>
          <article>${markdown(blocks)}</article>
        </div>`
}
