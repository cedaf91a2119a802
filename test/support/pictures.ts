// Compares what a browser shows with a picture that was looked at. Both are averaged over squares of a few pixels: another smoothing of edges
// makes no difference, and a line of text that is one pixel lower does. LATCHKEY_TEST_PICTURES=update makes new pictures, which must be looked
// at.
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'

/** The side of a square in pixels. */
const side = 4
/** Two squares are the same up to this distance of their brightness, of 255. */
const distanceMax = 20
/** Of all squares, so many may differ: a caret, an arrow. */
const shareMax = 0.0005

type Difference = { squares: number; differing: number[]; png: string }

/** Runs in the browser, which reads pictures. `known` is empty while pictures are made. */
const comparing = `async (shown, known) => {
  const read = async (base64, side) => {
    const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + base64)).blob())
    const [width, height] = [image.width, image.height].map((pixels) => Math.floor(pixels / side))
    const canvas = Object.assign(document.createElement('canvas'), { width, height })
    const context = canvas.getContext('2d', { willReadFrequently: true })
    context.filter = 'grayscale(1)'
    context.imageSmoothingQuality = 'high'
    context.drawImage(image, 0, 0, width, height)
    return { width, canvas, data: context.getImageData(0, 0, width, height).data }
  }
  const now = await read(shown, ${side})
  const before = known === '' ? now : await read(known, 1)
  const differing = []
  for (let index = 0; index < now.data.length; index += 4)
    if (Math.abs(now.data[index] - (before.data[index] ?? 999)) > ${distanceMax}) differing.push(Math.floor(index / 4 / now.width))
  return { squares: now.data.length / 4, differing, png: now.canvas.toDataURL('image/png').split(',')[1] }
}`

/** Opens a page in which pictures are compared with those of a folder. */
export async function createComparison(context: BrowserContext, folder: string) {
  const bench = await context.newPage()
  const isUpdating = process.env.LATCHKEY_TEST_PICTURES === 'update'
  /** What differs from the picture with this name, as one sentence; empty if nothing does. */
  return async (page: Page, name: string): Promise<string> => {
    const shown = (await page.screenshot({ animations: 'disabled' })).toString('base64')
    const file = join(folder, `${name}.png`)
    const known = isUpdating ? '' : Buffer.from(await Bun.file(file).arrayBuffer()).toString('base64')
    const call = `(${comparing})(${JSON.stringify(shown)}, ${JSON.stringify(known)})`
    const { squares, differing, png } = (await bench.evaluate(call)) as Difference
    if (isUpdating) mkdirSync(folder, { recursive: true })
    if (isUpdating) await Bun.write(file, Buffer.from(png, 'base64'))
    if (differing.length <= shareMax * squares) return ''
    const [top, bottom] = [Math.min(...differing) * side, Math.max(...differing) * side]
    const copy = join(tmpdir(), `latchkey-picture-${name}.png`)
    await Bun.write(copy, Buffer.from(png, 'base64'))
    return `${differing.length} of ${squares} squares of ${name} differ, ${top} to ${bottom} pixels below the top: see ${copy}`
  }
}
