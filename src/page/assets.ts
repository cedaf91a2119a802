// The files of the admin page as text, the same on every runtime. Only the first request for one of them loads this file.
// @ts-expect-error It is imported as text, and its declarations describe the module.
import litHtml from '../../node_modules/lit-html/lit-html.js' with { type: 'text' }
import indexHtml from './assets/index.html' with { type: 'text' }
import mainJs from './assets/main.js' with { type: 'text' }
import pageCss from './assets/page.css' with { type: 'text' }

// Bun's types know a page only as a bundle.
const indexText: unknown = indexHtml

/** By the name under which the page asks for it. */
export const assets: ReadonlyMap<string, string> = new Map([
  ['index.html', String(indexText)],
  ['lit-html.js', String(litHtml)],
  ['main.js', mainJs],
  ['page.css', pageCss],
])
