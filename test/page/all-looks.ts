// Pictures of every view, and of dialogs and changed forms, in every look, for people: `bun test/page/all-looks.ts FOLDER`. Each look is a folder,
// and a sheet of all its views. It also lists what is wider than its window: the page, or a table that scrolls sideways. Not part of the tests.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { closeBrowser, openBrowser } from '../support/browser.ts'
import { type Row, startFederation } from '../support/latchkey.ts'
import { openAdminPage, overflowOf } from '../support/opened-page.ts'
import { addViews, showView } from '../support/page-views.ts'

const [folder = '', ...chosen] = process.argv.slice(2)
if (folder === '') throw new Error('Name a folder: bun test/page/all-looks.ts FOLDER [LOOK…]')

const schemes: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  forced: { colorScheme: 'dark', forcedColors: 'active' },
}
const looks = Object.entries(schemes).flatMap(([scheme, options]) =>
  [1440, 1024, 390].map((width) => [`${width}-${scheme}`, { ...options, viewport: { width, height: 900 } }] as const),
)
/** As a browser shows windows of 1,440 by 900 and 1,024 by 768 pixels at 200 %. */
const zooms = { 1440: { width: 720, height: 450 }, 1024: { width: 512, height: 384 } }
const all: [string, BrowserContextOptions][] = [
  ...looks.map(([name, look]) => [name, look] as [string, BrowserContextOptions]),
  ...Object.entries(zooms).map(([width, viewport]): [string, BrowserContextOptions] => [
    `zoom-${width}`,
    { viewport, deviceScaleFactor: 2 },
  ]),
]

/** Tables and boxes that scroll sideways. */
const sideways = (page: Page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('main .table, main .card')]
      .filter((box) => box.closest('details:not([open])') === null && box.scrollWidth > box.clientWidth + 1)
      .map((box) => `${box.className} by ${box.scrollWidth - box.clientWidth}`),
  )

/** Views side by side, each with its address. */
async function writeSheet(look: string, views: readonly string[]): Promise<void> {
  const cells = views.map((view, index) => {
    const data = readFileSync(join(folder, look, `${index}.png`)).toString('base64')
    return `<figure><img src="data:image/png;base64,${data}"><figcaption>${view.replaceAll('<', '&lt;')}</figcaption></figure>`
  })
  const context = await openBrowser({ viewport: { width: 1800, height: 1000 } })
  const page = await context.newPage()
  const perSheet = 12
  for (let from = 0; from < cells.length; from += perSheet) {
    await page.setContent(
      `<style>body{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:8px;margin:8px;font:12px sans-serif}figure{margin:0}img{width:100%}figcaption{overflow-wrap:anywhere}</style>${cells.slice(from, from + perSheet).join('')}`,
    )
    await page.screenshot({ path: join(folder, `${look}-${from / perSheet}.png`), fullPage: true })
  }
  await context.close()
}

const latchkey = await startFederation()
let saves = 0
/** What a view shows only after somebody has done something. */
const states: [name: string, hash: string, act: (page: Page) => Promise<unknown>][] = [
  ['unsaved changes', '/edit', (page) => page.getByLabel('Name').first().fill('changed')],
  [
    'a conflict',
    '/edit',
    async (page) => {
      await page.getByLabel('Name').first().fill('mine')
      await latchkey.admin('policies.update', { policy: latchkey.policy.id, description: `theirs ${++saves}` })
      await latchkey.admin('policies.update', { policy: latchkey.policy.id, name: `theirs ${saves}` })
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.getByRole('button', { name: 'Replace theirs' }).waitFor()
    },
  ],
  ['the question before a deletion', '', (page) => page.getByRole('button', { name: 'Delete' }).first().click()],
  ['the palette', '', (page) => page.keyboard.press('Control+k')],
  ['the keys', '', (page) => page.keyboard.press('?')],
  [
    'the server is away',
    '',
    async (page) => {
      await page.route('**/v1/**', (route) => route.abort())
      await page.getByText('has not responded').first().waitFor()
    },
  ],
]

/** Each in its own tab, so that no draft and no dialog stays. Returns their names. */
async function showStates(signedIn: Page, look: string, first: number): Promise<string[]> {
  for (const [index, [, end, act]] of states.entries()) {
    const page = await signedIn.context().newPage()
    await page.goto(signedIn.url().replace(/#.*/, ''))
    await page.locator('#navigation').waitFor({ state: 'attached' })
    await showView(page, `#/policies/${latchkey.policy.id}${end}`)
    await act(page)
    await page.screenshot({ path: join(folder, look, `${first + index}.png`) })
    if ((await overflowOf(page)) !== 0) console.log(`${look} ${states[index]?.[0]}: too wide`)
    await page.close()
  }
  return states.map(([name]) => name)
}

const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
const views = await addViews(latchkey)
for (const [look, options] of all.filter(([name]) => chosen.length === 0 || chosen.includes(name))) {
  mkdirSync(join(folder, look), { recursive: true })
  const page = await openAdminPage(latchkey, { ...options, key, reducedMotion: 'reduce' })
  for (const [index, view] of views.entries()) {
    await showView(page, view)
    await page.evaluate('document.fonts.ready.then(() => document.activeElement.blur())')
    await page.screenshot({ path: join(folder, look, `${index}.png`) })
    const wide = [await overflowOf(page), ...(await sideways(page))].filter((each) => each !== 0)
    if (wide.length > 0) console.log(`${look} ${view}: ${wide.join(', ')}`)
  }
  if (page.problems.length > 0) console.log(look, page.problems)
  const shown = await showStates(page, look, views.length)
  await page.context().close()
  await writeSheet(look, [...views, ...shown])
}
writeFileSync(join(folder, 'views.txt'), views.join('\n'))
await closeBrowser()
await latchkey.stop()
process.exit(0)
