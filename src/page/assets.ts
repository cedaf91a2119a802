// The files of the admin page as text, the same on every runtime. Only the first request for one of them loads this file.
// @ts-expect-error It is imported as text, and its declarations describe the module.
import litHtml from '../../node_modules/lit-html/lit-html.js' with { type: 'text' }
import chartJs from './assets/chart.js' with { type: 'text' }
import clientJs from './assets/client.js' with { type: 'text' }
import dialogJs from './assets/dialog.js' with { type: 'text' }
import diffJs from './assets/diff.js' with { type: 'text' }
import formJs from './assets/form.js' with { type: 'text' }
import frameJs from './assets/frame.js' with { type: 'text' }
import iconSvg from './assets/icon.svg' with { type: 'text' }
import iconsJs from './assets/icons.js' with { type: 'text' }
import indexHtml from './assets/index.html' with { type: 'text' }
import mainJs from './assets/main.js' with { type: 'text' }
import noticeJs from './assets/notice.js' with { type: 'text' }
import pageCss from './assets/page.css' with { type: 'text' }
import pageJs from './assets/page.js' with { type: 'text' }
import partsJs from './assets/parts.js' with { type: 'text' }
import routerJs from './assets/router.js' with { type: 'text' }
import signInJs from './assets/sign-in.js' with { type: 'text' }
import startJs from './assets/start.js' with { type: 'text' }
import tableJs from './assets/table.js' with { type: 'text' }
import viewsJs from './assets/views.js' with { type: 'text' }

// Bun's types know a page only as a bundle.
const indexText: unknown = indexHtml

/** By the name under which the page asks for it. */
export const assets: ReadonlyMap<string, string> = new Map([
  ['index.html', String(indexText)],
  ['lit-html.js', String(litHtml)],
  ['chart.js', chartJs],
  ['client.js', clientJs],
  ['dialog.js', dialogJs],
  ['diff.js', diffJs],
  ['form.js', formJs],
  ['frame.js', frameJs],
  ['icon.svg', iconSvg],
  ['icons.js', iconsJs],
  ['main.js', mainJs],
  ['notice.js', noticeJs],
  ['page.js', pageJs],
  ['parts.js', partsJs],
  ['router.js', routerJs],
  ['sign-in.js', signInJs],
  ['start.js', startJs],
  ['table.js', tableJs],
  ['views.js', viewsJs],
  ['page.css', pageCss],
])
