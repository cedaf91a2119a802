// Debian's Chromium for tests of the admin page. One process serves all tests of a test process; each test opens its own context, with
// its own cookies.
import { afterAll } from 'bun:test'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core'

const executablePath = Bun.which('chromium') ?? undefined

/** Tests that need it are skipped by name without it. */
export const hasChromium = executablePath !== undefined

let starting: Promise<Browser> | undefined

function launch(): Promise<Browser> {
  // Containers without user namespaces and with a small /dev/shm need the arguments. Tests open only pages of these servers.
  starting ??= chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] })
  return starting
}

/** A new context of the browser, which starts with the first. */
export async function openBrowser(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  return (await launch()).newContext({ serviceWorkers: 'block', ...options })
}

/** Call it once in a file that opens the browser: it ends with the file. */
export function closeBrowserAfterAll(): void {
  afterAll(async () => {
    const browser = await starting
    starting = undefined
    await browser?.close()
  })
}
