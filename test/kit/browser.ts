// A real browser: the machine's own chromium, driven by playwright. Every page that is opened here notes events that
// must never happen: an error, a dialog, a request to another host, a violation of the content policy.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import {
  type Browser,
  type BrowserContext,
  type ConsoleMessage,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core'
import type { Cleanup } from './process.ts'
import { until } from './until.ts'

/** The shell is the same browser without windows, and starts faster. */
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
const FLAGS = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-sync']
const isRoot = process.getuid?.() === 0
/** A wait on a page fails after this time. Other tests, and other machines, may have the processor meanwhile. */
const PATIENCE_MS = 60_000

/** The path of the browser, or null. */
export const browserPath: string | null = findOnPath()

/** The `skip` of a test: the reason why there is no browser, or false. */
export const noBrowser = browserPath === null ? `none of ${NAMES.join(', ')} is on the PATH` : false

export interface Watched {
  page: Page
  context: BrowserContext
  /** The forbidden events on the page, one line each. */
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

/** Waits until the page shows this many: parts of a page may come later than the others. */
export const untilCount = (shown: Locator, count: number): Promise<void> =>
  until(async () => (await shown.count()) === count, `${count} of ${shown} are shown`)

/** A page that shares no cookies or storage with others. */
export async function openPage(browser: Browser, options: PageOptions): Promise<Watched> {
  const context = await openContext(browser, options)
  return watch(context, options.origin)
}

/** Pages of one context share their cookies, their storage and the files that they have loaded. */
export async function openContext(
  browser: Browser,
  { origin, cookie, viewport }: PageOptions,
): Promise<BrowserContext> {
  const size = viewport ?? { width: 1_280, height: 800 }
  const looks = { viewport: size, colorScheme: 'dark', reducedMotion: 'reduce' } as const
  const context = await browser.newContext({ ...looks, locale: 'en-GB', timezoneId: 'UTC' })
  context.setDefaultTimeout(PATIENCE_MS)
  if (cookie !== undefined) await signIn(context, origin, cookie)
  return context
}

export async function signIn(context: BrowserContext, origin: string, cookie: string): Promise<void> {
  const [name = '', value = ''] = cookie.split(/=(.*)/s)
  await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: 'Lax' }])
}

/** A new page whose troubles are noted. */
export async function watch(context: BrowserContext, origin: string): Promise<Watched> {
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
  // A request that the browser itself could not send explains a missing page, so it is printed.
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'unknown'
    if (reason !== 'net::ERR_ABORTED') process.stderr.write(`the browser could not load ${request.url()}: ${reason}\n`)
  })
  page.on('console', (message) => {
    if (message.type() === 'error' && !isRefusal(message)) troubles.push(`said ${message.text()}`)
  })
  return { page, context, troubles }
}

/** The browser itself reports every answer of 400 and above, and every request that a server did not answer. */
const isRefusal = (message: ConsoleMessage): boolean =>
  message.text().startsWith('Failed to load resource: ') &&
  /^\/(api|v1)\//.test(new URL(message.location().url).pathname)

/** Without the reports of the browser, and of React, that a file of the console was not loaded. */
export const withoutMissingFiles = (troubles: readonly string[]): string[] =>
  troubles.filter(
    (trouble) => !/Failed to load resource|The server could not be reached for a part of this page/.test(trouble),
  )

/** A path that is not listed here must come from the content of the page. */
const isKnown = (path: string): boolean =>
  ['/', '/account', '/readyz'].includes(path) || /^\/(api|v1|assets|sign-in|invitations|resets|projects)\//.test(path)

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

/** Opens an address. If the machine's network lost one of the page's scripts, the page is loaded once more. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.goto(address)
  const byScript = page.locator('main .columns, main .card').first()
  await byScript.waitFor({ timeout: SCRIPTS_RUN_WITHIN_MS }).catch(async () => {
    process.stderr.write(`no script had run on ${address}; it is loaded again\n`)
    await page.reload()
  })
}
