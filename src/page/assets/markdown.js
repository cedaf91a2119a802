// Renders the Markdown of the manual as templates, never as raw HTML: headings, paragraphs, lists, tables, code, emphasis and
// links. `markdown(text)` renders; `sectionOf(text, heading)` is the text below a heading; `tableRows(text)` are the cells.
/** @import { Content } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { code } from './parts.js'

/** @param {string} text */
export function markdown(text) {
  return html`<div class="prose">${blocksOf(text).map(block)}</div>`
}

/** @param {string} text @returns {string[]} */
function blocksOf(text) {
  return text.match(/```[\s\S]*?\n```|(?:(?!```).+\n?)+/g) ?? []
}

/** @param {string} text @returns {Content} */
function block(text) {
  const fence = /^```\w*\n([\s\S]*?)\n?```$/.exec(text.trim())
  if (fence) return code(fence[1] ?? '', 'example')
  const heading = /^(#{1,4}) (.+)\n?([\s\S]*)/.exec(text)
  if (heading) {
    const title = inline(heading[2] ?? '')
    const level = heading[1]?.length
    return html`${level === 1 ? nothing : level === 2 ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`}${heading[3] ? block(heading[3]) : nothing}`
  }
  if (text.startsWith('|')) return tableOf(text)
  const items = text.split(/^(?:[-*]|\d+\.) /m)
  if (items[0] === '' && items.length > 1) {
    const list = items.slice(1).map((item) => html`<li>${inline(item)}</li>`)
    return /^\d/.test(text) ? html`<ol>${list}</ol>` : html`<ul>${list}</ul>`
  }
  return html`<p>${inline(text)}</p>`
}

/** The cells of the tables in a text, without their headings. @param {string} text */
export function tableRows(text) {
  return text
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[-| ]+\|$/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll('\\|', '|')),
    )
}

/** @param {string} text */
function tableOf(text) {
  const [head = [], ...rows] = tableRows(text)
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

/** The text below a heading of the second level. @param {string} text @param {string} heading */
export function sectionOf(text, heading) {
  return (
    text
      .split(/^## /m)
      .find((part) => part.startsWith(`${heading}\n`))
      ?.slice(heading.length) ?? ''
  )
}
