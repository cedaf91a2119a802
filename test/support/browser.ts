// Debian's Chromium for tests of the admin page. One process serves all files of a test process; each test opens its own context, with its own
// cookies.
import { afterAll } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core'

/** Tests that need it are skipped by name without it. */
export const hasChromium = Bun.which('chromium') !== null

const args = [
  // Containers without user namespaces and with a small /dev/shm need them. Tests open only pages of these servers.
  ...['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  // Each page lives for seconds: compiling its code well costs more than it saves.
  '--js-flags=--no-opt',
]

let starting: Promise<Browser> | undefined

/** The script removes the folder when the browser ends: with this process, in which nothing runs after the last file. */
async function launch(): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'lk-chromium-'))
  const { TMPDIR: before } = process.env
  process.env.TMPDIR = folder
  try {
    const env = { ...process.env, LATCHKEY_TEST_CHROMIUM_FOLDER: folder } as Record<string, string>
    return await chromium.launch({ executablePath: join(import.meta.dirname, 'chromium.sh'), args, env })
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

/** A new context of the browser, which starts with the first. */
export async function openBrowser(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  starting ??= launch()
  return (await starting).newContext({ serviceWorkers: 'block', ...options })
}

/** Ends the browser; the next context starts another one. */
export async function closeBrowser(): Promise<void> {
  const browser = await starting
  starting = undefined
  await browser?.close()
}

/** Call it once in a file that opens the browser: what the file opened ends with it, and with `withBrowser` the browser too. */
export function closePagesAfterAll({ withBrowser = false } = {}): void {
  afterAll(async () => {
    if (withBrowser) return closeBrowser()
    const browser = await starting
    await Promise.all((browser?.contexts() ?? []).map((each) => each.close()))
  })
}
