// Renders the Markdown of the manual as templates, never as raw HTML: headings, paragraphs, lists, tables, code, emphasis and
// links. `markdown(blocks)` renders what the server read; `inline(text)` is a text with emphasis and links.
/** @import { Block, Content } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { code } from './parts.js'

/** @param {readonly Block[]} blocks */
export function markdown(blocks) {
  return html`<div class="prose">${blocks.map(render)}</div>`
}

/** @param {Block} block @returns {Content} */
function render(block) {
  if (block.kind === 'code') return code(block.text, 'example')
  if (block.kind === 'paragraph') return html`<p>${inline(block.text)}</p>`
  if (block.kind === 'table') return table(block.rows)
  if (block.kind === 'list') {
    const list = block.items.map(({ text }) => html`<li>${inline(text)}</li>`)
    return /^\d/.test(block.items[0]?.mark ?? '') ? html`<ol>${list}</ol>` : html`<ul>${list}</ul>`
  }
  const title = inline(block.text)
  return block.level === 1 ? nothing : block.level === 2 ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`
}

/** @param {readonly string[][]} rows */
function table([head = [], ...rows]) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
    <thead><tr>${head.map((cell) => html`<th scope="col">${inline(cell)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inline(cell)}</td>`)}</tr>`)}</tbody>
  </table></div>`
}

/** @param {string} text */
export function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map((part, index) => {
    if (index % 2 === 0) return part
    if (part.startsWith('`')) return html`<code>${part.slice(1, -1)}</code>`
    if (part.startsWith('*')) return html`<strong>${part.slice(2, -2)}</strong>`
    const [, words = '', target = ''] = /^\[(.+)\]\((.+)\)$/s.exec(part) ?? []
    const topic = /^([\w-]+)\.md/.exec(target)?.[1]
    if (topic !== undefined) return html`<a href=${`#/manual/${topic}`}>${words}</a>`
    return target.startsWith('https:') ? html`<a href=${target} rel="noreferrer">${words}</a>` : words
  })
}
