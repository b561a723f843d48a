// A real browser: the chromium that the machine has, driven by playwright. Every page that is opened here notes the
// things that a page must never do: throw, open a dialog, load from elsewhere, run into the content policy.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import type { Cleanup } from './process.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const FLAGS = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-sync']
const isRoot = process.getuid?.() === 0
/** A wait on a page fails after this time, not after playwright's 30 s. */
const PATIENCE_MS = 20_000

/** The path of the browser, or null. */
export const browserPath: string | null = findOnPath()

/** For `skip` of a test: the reason why there is no browser, or false. */
export const noBrowser = browserPath === null ? `none of ${NAMES.join(', ')} is on the PATH` : false

export interface Watched {
  page: Page
  context: BrowserContext
  /** The forbidden things that the page did, one line each. */
  troubles: string[]
}

export interface PageOptions {
  origin: string
  /** The cookie as a request sends it. */
  cookie?: string
  viewport?: { width: number; height: number }
}

export async function startBrowser(t: Cleanup): Promise<Browser> {
  if (browserPath === null) throw new Error(String(noBrowser))
  // chromium's sandbox does not work for root.
  const args = isRoot ? ['--no-sandbox', ...FLAGS] : FLAGS
  const browser = await chromium.launch({ executablePath: browserPath, args })
  t.after(() => browser.close())
  return browser
}

/** A page of its own, with nothing from the others. */
export async function openPage(browser: Browser, { origin, cookie, viewport }: PageOptions): Promise<Watched> {
  const size = viewport ?? { width: 1_280, height: 800 }
  const context = await browser.newContext({ viewport: size, colorScheme: 'dark', locale: 'en-GB', timezoneId: 'UTC' })
  context.setDefaultTimeout(PATIENCE_MS)
  if (cookie !== undefined) {
    const [name = '', value = ''] = cookie.split(/=(.*)/s)
    await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Lax' }])
  }
  const page = await context.newPage()
  const troubles: string[] = []
  page.on('pageerror', (error) => troubles.push(`threw ${error.message}`))
  page.on('dialog', (dialog) => {
    troubles.push(`opened a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const url = new URL(request.url())
    const isOwn = url.origin === origin && isKnown(url.pathname)
    if (!isOwn && url.protocol !== 'data:') troubles.push(`asked for ${request.url()}`)
  })
  // A request that fails for the browser's own reasons explains a page that does not come.
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'unknown'
    if (reason !== 'net::ERR_ABORTED') process.stderr.write(`the browser could not load ${request.url()}: ${reason}\n`)
  })
  page.on('console', (message) => {
    if (/content security policy|refused to/i.test(message.text())) troubles.push(`said ${message.text()}`)
  })
  return { page, context, troubles }
}

/** Any other path was made up by the content of the page. */
const isKnown = (path: string): boolean =>
  path === '/' || path === '/readyz' || /^\/(api|assets|sign-in|invitations|resets)\//.test(path)

function findOnPath(): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const found = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
  return found ?? null
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const SCRIPTS_RUN_WITHIN_MS = 10_000

/** Opens an address. A browser that lost one of the page's scripts to the machine's network is asked once more. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.goto(address)
  const byScript = page.locator('main .columns, main .card').first()
  await byScript.waitFor({ timeout: SCRIPTS_RUN_WITHIN_MS }).catch(async () => {
    process.stderr.write(`no script had run on ${address}; it is loaded again\n`)
    await page.reload()
  })
}
