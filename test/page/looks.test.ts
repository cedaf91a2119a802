// Every view for everybody, each opened once: no barriers, wide and light or narrow and dark, and hostile texts shown as text. Other files look for
// barriers only in what these views do not show by themselves, such as an open menu.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { closePagesAfterAll, hasChromium } from '../support/browser.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { findBarriers, type OpenedPage, openAdminPage, overflowOf } from '../support/opened-page.ts'
import { addViews, hostile, showView } from '../support/page-views.ts'

/** Dark has other colors and nothing else, and a narrow window the same elements in other places: one look has both. */
const rulesOfColorsAndPlaces = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'target-size']
closePagesAfterAll()

describe.skipIf(!hasChromium)('the views (needs chromium)', () => {
  let latchkey: Federation
  let page: OpenedPage
  let views: string[]
  beforeAll(async () => {
    latchkey = await startFederation()
    views = await addViews(latchkey)
    page = await openAdminPage(latchkey, { reducedMotion: 'reduce' })
  })
  afterAll(async () => {
    await latchkey.stop()
  })

  const show = (hash: string) => showView(page, hash)

  /** `within` is what differs from one view to the next. */
  const examine = async (view: string, within?: string) => {
    const barriers = await findBarriers(page, undefined, within)
    const overflow = await overflowOf(page)
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize({ width: 320, height: 800 })
    barriers.push(...(await findBarriers(page, rulesOfColorsAndPlaces, within)))
    expect({ view, barriers, overflow, narrow: await overflowOf(page) }).toEqual({
      view,
      barriers: [],
      overflow: 0,
      narrow: 0,
    })
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1280, height: 800 })
  }

  /** At 200 % in a window of 1,024 by 768 pixels, what stays in place while a form scrolls leaves three quarters to it. */
  const examineZoomed = async (view: string) => {
    await page.setViewportSize({ width: 512, height: 384 })
    const covered = await page.evaluate(() =>
      [...document.querySelectorAll('body *')]
        .filter((each) => /^(fixed|sticky)$/.test(getComputedStyle(each).position) && each.closest('table') === null)
        .reduce((sum, each) => sum + each.getBoundingClientRect().height, 0),
    )
    expect({ view, overflow: await overflowOf(page), isCovered: covered > 384 / 4 }).toEqual({
      view,
      overflow: 0,
      isCovered: false,
    })
    await page.setViewportSize({ width: 1280, height: 800 })
  }

  /** No image, no script, and no character that turns the direction of what follows. A field holds the text as it is stored. */
  const hasOnlyText = async (view: string) => {
    const found = await page.locator('main').evaluate((main) => ({
      elements: main.querySelectorAll('img, script').length,
      turns: /[\u202a-\u202e\u2066-\u2069]/.test(main.textContent ?? ''),
    }))
    expect({ view, ...found }).toEqual({ view, elements: 0, turns: false })
  }

  test('have no barriers and fit, wide and light, narrow and dark, and show hostile texts as text', async () => {
    await page.getByLabel('Management key').waitFor()
    await examine('the sign-in')
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
    await page.getByLabel('Management key').fill(key)
    await page.keyboard.press('Enter')
    await page.locator('#title').waitFor()
    for (const hash of views) {
      await show(hash)
      if (hash === '#/try') {
        const token = await latchkey.mint({ note: hostile + 'x'.repeat(9_000), aud: hostile })
        await page.getByLabel('Token (JWT)').fill(token)
        await page.getByRole('button', { name: 'Check the token' }).click()
        await page.getByText('would be refused').first().waitFor()
      }
      if (hash.startsWith('#/exchanges/'))
        await page.getByText('<script>alert(1)</script>‹U+202E›gnp.').first().waitFor()
      await examine(hash, hash === views[0] ? undefined : 'main')
      await hasOnlyText(hash)
      if ((await page.locator('main form > .buttons').count()) > 0) await examineZoomed(hash)
    }
    await page.setViewportSize({ width: 320, height: 800 })
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await findBarriers(page)).toEqual([])
    await page.emulateMedia({ colorScheme: 'light' })
    expect([await findBarriers(page), await overflowOf(page)]).toEqual([[], 0])
    await show('#/requests')
    const [fold, time] = [page.getByRole('button', { name: /^Filters/ }), page.getByLabel('Time')]
    expect(await time.isVisible()).toBe(false)
    await fold.click()
    await time.selectOption('1h')
    expect([await fold.textContent(), await fold.getAttribute('aria-expanded')]).toEqual(['Filters (1)', 'true'])
    expect([await findBarriers(page), await overflowOf(page)]).toEqual([[], 0])
    await page.setViewportSize({ width: 1280, height: 800 })
    expect([await fold.isVisible(), await time.isVisible()]).toEqual([false, true])
    expect(page.problems).toEqual([])
  }, 120_000)

  test('are all of the menu, and forms and details of each kind', async () => {
    const links = await page
      .locator('#navigation nav a')
      .evaluateAll((all) => all.map((each) => each.getAttribute('href')))
    expect(links.length).toBeGreaterThan(15)
    const isShown = (link: string | null) => views.some((view) => view.replace(/\?.*/, '').startsWith(link ?? '?'))
    expect(links.filter((link) => !isShown(link))).toEqual([])
  })

  test('say why nothing can be exchanged without the entitlement', async () => {
    await latchkey.admin('organizations.plan', { organization: 'default', plan: 'free' })
    await show('#/policies')
    await page.reload()
    await page.getByText('No token can be exchanged.').waitFor()
    expect(page.problems).toEqual([])
  })
})
