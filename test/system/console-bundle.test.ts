// The code of the console: the first view is small, and a part whose code cannot be loaded leaves the others alive.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { before, describe } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Locator, Page } from 'playwright-core'
import type { Eval } from '../../src/kernel/eval.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, openPage, withoutMissingFiles } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import type { Cleanup } from '../kit/process.ts'
import { inSystem, isUsual, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const DIST = new URL('../../ui/dist/', import.meta.url)
const MOST_BYTES = 250_000
/** A word of each large library that stays in its built code. */
const MARKS = {
  'the graph': /react-flow__/,
  'the layout of graphs': /acyclicer/,
  'the charts': /recharts-/,
  'the chat': /text-delta/,
}

describe('the first view of the console', () => {
  test('has less than 250 kB of script and style, compressed', async (t) => {
    const sizes = await Promise.all((await firstView()).map(async (name) => [name, await sizeOf(name)] as const))
    const total = sizes.reduce((sum, [, size]) => sum + size, 0)
    const largest = sizes.toSorted(([, a], [, b]) => b - a).map(([name, size]) => `${size} ${name}`)
    t.diagnostic(`${total} bytes in ${sizes.length} files; the largest: ${largest.slice(0, 5).join(', ')}`)
    assert.ok(sizes.length > 20, 'the imports were not found')
    assert.ok(total < MOST_BYTES, `${total} bytes:\n${largest.join('\n')}`)
  })

  test('has neither the graph nor the charts nor the chat', async () => {
    const inFirstView = new Set(await firstView())
    const scripts = (await readdir(new URL('assets/', DIST))).filter((name) => name.endsWith('.js'))
    for (const [part, mark] of Object.entries(MARKS)) {
      const holding: string[] = []
      for (const name of scripts) if (mark.test(await readAsset(name))) holding.push(name)
      assert.ok(holding.length > 0, `no script has ${part}`)
      assert.deepEqual(
        holding.filter((name) => inFirstView.has(name)),
        [],
        part,
      )
    }
  })
})

const readAsset = (name: string): Promise<string> => readFile(new URL(`assets/${name}`, DIST), 'utf8')
const sizeOf = async (name: string): Promise<number> => gzipSync(await readAsset(name), { level: 9 }).length

/** The scripts and styles that index.html names, those of the home page, and every script that they import. */
async function firstView(): Promise<string[]> {
  const index = await readFile(new URL('index.html', DIST), 'utf8')
  const named = [...index.matchAll(/(?:src|href)="\/assets\/([^"]+)"/g)].map(([, name = '']) => name)
  const entry = named.find((name) => /^index-.*\.js$/.test(name)) ?? assert.fail('index.html has no script')
  const found = new Set<string>()
  const add = async (name: string): Promise<void> => {
    if (found.has(name)) return
    found.add(name)
    if (!name.endsWith('.js')) return
    const imports = (await readAsset(name)).matchAll(/\b(?:from|import)\s*["'`]\.\/([^"'`]+\.js)["'`]/g)
    for (const [, imported = ''] of imports) await add(imported)
  }
  for (const name of [...named, ...(await neededBy('home-page', entry))]) await add(name)
  return [...found]
}

/** The files that the script loads before it shows this page, as vite lists them. */
async function neededBy(page: string, script: string): Promise<string[]> {
  const code = await readAsset(script)
  const files = /__vite__mapDeps=.*?m\.f=(\[[^\]]*\])/.exec(code)?.[1] ?? assert.fail('vite lists no files')
  const places = new RegExp(`import\\(\`\\./${page}-[^)]*\\),__vite__mapDeps\\((\\[[^\\]]*\\])\\)`).exec(code)?.[1]
  const all: string[] = JSON.parse(files)
  const needed: number[] = JSON.parse(places ?? assert.fail(`the script does not load ${page}`))
  return needed.map((place) => (all[place] ?? '').replace('assets/', ''))
}

/** True if the graph has its styles. */
const IS_PLACED = `getComputedStyle(document.querySelector('.react-flow__node')).position === 'absolute'`

describe('the code of the console in a browser', { skip: noBrowser }, () => {
  let kit: ConsoleKit

  before(async () => {
    if (!isUsual) kit = await startConsole({ after: atEnd })
  })

  inSystem('Home loads nothing but the files of the first view', async (t) => {
    const { page, context, troubles } = await openPage(kit.browser, { origin: kit.muster.url, cookie: kit.cookie })
    t.after(() => context.close())
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(kit.muster.url)
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
    await page.getByRole('region', { name: 'Runs now' }).waitFor()
    const expected = await firstView()
    const assets = asked.filter((path) => /\/assets\/.*\.(js|css)$/.test(path)).map((path) => path.slice(8))
    assert.ok(assets.length > 10, `only ${assets.length} files were asked for`)
    assert.deepEqual(
      assets.filter((name) => !expected.includes(name)),
      [],
    )
    assert.deepEqual(troubles, [])
  })

  /** Opens an address while a file cannot be loaded; then the file can be loaded again. */
  async function retries(t: Cleanup, place: string, file: string, shows: Shown): Promise<void> {
    const { page, troubles } = await kit.open(t, '/settings/keys')
    await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
    await page.route(`**/assets/${file}-*`, (route) => route.abort())
    await kit.goTo(page, place)
    const failure = page.getByRole('alert').filter({ hasText: 'cannot be shown.' })
    await failure.waitFor()
    await shows.alive(page).first().waitFor()
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Runs' }).waitFor()
    const failsAgain = page.waitForEvent('requestfailed', (request) => /\.(js|css)$/.test(request.url()))
    await failure.getByRole('button', { name: 'Retry' }).click()
    await failsAgain
    await failure.waitFor()
    await page.unroute(`**/assets/${file}-*`)
    await failure.getByRole('button', { name: 'Retry' }).click()
    await shows.retried(page).first().waitFor()
    await shows.styled?.(page)
    assert.equal(await failure.count(), 0)
    assert.deepEqual(withoutMissingFiles(troubles), [])
  }

  interface Shown {
    /** Shown although the file is missing. */
    alive: (page: Page) => Locator
    /** Shown once the file is there. */
    retried: (page: Page) => Locator
    /** Waits for the styles of the part. */
    styled?: (page: Page) => Promise<unknown>
  }

  const menu = (page: Page): Locator => page.getByRole('navigation', { name: 'Main' })

  inSystem('a graph that cannot be loaded says so, and Retry shows it', async (t) => {
    const leaf = { type: 'task', agent: 'Gardener', input: { tag: 'leaf', steps: [{ say: 'A leaf.' }] } }
    const { id } = await kit.api<{ id: string }>(`POST ${kit.path}/flow-runs`, {
      root: { type: 'sequential', steps: [leaf, leaf] },
    })
    await retries(t, `/flows/${id}?view=graph`, 'flow-graph', {
      alive: (page) => page.getByRole('tab', { name: 'Timeline' }),
      retried: (page) => page.locator('.react-flow__node'),
      styled: (page) => until(async () => (await page.evaluate(IS_PLACED)) === true, 'the graph has its styles'),
    })
  })

  inSystem('charts that cannot be loaded say so, and Retry shows them', async (t) => {
    const { id } = await kit.api<Eval>(`POST ${kit.path}/evals`, {
      name: 'Rain',
      cases: [{ task: 'Tell me about rain.', expect: { status: 'DONE' } }],
      variants: ['blue'],
    })
    const read = (): Promise<Eval> => kit.api<Eval>(`GET ${kit.path}/evals/${id}`)
    await until(async () => (await read()).status !== 'running', 'the eval ends', 60_000)
    await retries(t, `/evals/${id}`, 'eval-charts', {
      alive: (page) => page.getByRole('region', { name: 'Cases' }),
      retried: (page) => page.locator('.recharts-surface'),
    })
  })

  inSystem('a chat that cannot be loaded says so, and Retry shows it', async (t) => {
    await retries(t, '/playground', 'chat', {
      alive: (page) => page.getByRole('heading', { name: 'Playground', level: 1 }),
      retried: (page) => page.getByRole('button', { name: 'Send' }),
    })
  })

  inSystem('a page that cannot be loaded leaves the navigation alive, and Retry shows it', async (t) => {
    await retries(t, '/prompts', 'prompts-page', {
      alive: menu,
      retried: (page) => page.getByRole('heading', { name: 'Prompts', level: 1 }),
    })
  })

  inSystem('a page that cannot be loaded does not keep people from the others', async (t) => {
    const { page, troubles } = await kit.open(t, '/runs')
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    await page.route('**/assets/objects-page-*', (route) => route.abort())
    await menu(page).getByRole('link', { name: 'Objects' }).click()
    await page.getByRole('alert').getByRole('button', { name: 'Retry' }).waitFor()
    await menu(page).getByRole('link', { name: 'Agents' }).click()
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    await page.unroute('**/assets/objects-page-*')
    await menu(page).getByRole('link', { name: 'Objects' }).click()
    const heading = page.getByRole('heading', { name: 'Objects', level: 1 })
    const retry = page.getByRole('alert').getByRole('button', { name: 'Retry' })
    // Some browsers keep the failure of a module until the page is loaded anew; others ask for the module again.
    await heading.or(retry).first().waitFor()
    if (await retry.isVisible()) await retry.click()
    await heading.waitFor()
    assert.deepEqual(withoutMissingFiles(troubles), [])
  })
})
