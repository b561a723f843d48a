// Every command of the README that needs a server is run as it stands, by a shell, in the order of the page, against a
// new server with the demo project.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { atEnd } from '../kit/at-end.ts'
import { type Muster, makeFolder, repository, startMuster } from '../kit/process.ts'

const wholeFile = { after: atEnd }
/** The demo and the commands before have to catch up: the page says "a moment later". */
const PATIENCE_MS = 30_000
/** The exit code of `muster run` for a run that waits for a person. The page's next commands answer its question. */
const PAUSED = 5
const readme = await readFile(join(repository, 'README.md'), 'utf8')
let muster: Muster
let folder: string

before(async () => {
  folder = await makeFolder(wholeFile)
  muster = await startMuster(wholeFile, {})
})

for (const heading of [
  'The first five minutes',
  'Everything over the API',
  'A team that works on its own',
  'A task for the supervisor',
]) {
  test(`README, ${heading}: every command works`, async () => {
    const commands = blocksOf(heading).flatMap(commandsIn)
    assert.ok(commands.length > 5, `${heading} has commands`)
    for (const command of commands) await runPatiently(command)
  })
}

test('README, The first five minutes: the commands did what the page says', async () => {
  const inbox = await run('muster inbox --json')
  assert.doesNotMatch(inbox, /Triage/, 'both suggestions are decided')
  const tickets = await run('muster api GET "objects?type=Ticket"')
  assert.match(tickets, /"key":"T-2"/)
  const runs = JSON.parse(await run('muster runs --agent Coordinator --json')) as { items: { status: string }[] }
  assert.ok(runs.items.length >= 2)
  assert.ok(runs.items.every(({ status }) => status === 'completed'))
})

function blocksOf(heading: string): string[] {
  const part = readme.split(/^(?=## )/m).find((each) => each.startsWith(`## ${heading}\n`))
  assert.ok(part, `the README has no part "${heading}"`)
  return [...part.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block)
}

/** A command ends with its line, unless a quote is open. */
function commandsIn(block: string): string[] {
  const commands: string[] = []
  let open = ''
  for (const line of block.split('\n')) {
    // A remark at the end of a line may have an apostrophe.
    open += open === '' ? line.replace(/\s+# .*$/, '') : `\n${line}`
    if ((open.split("'").length - 1) % 2 === 1) continue
    if (open.trim() !== '' && !open.startsWith('#') && !open.startsWith('alias ')) commands.push(open)
    open = ''
  }
  assert.equal(open, '', 'every quote is closed')
  return commands
}

async function runPatiently(command: string): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      await run(command)
      return
    } catch (error) {
      if (command.startsWith('muster run Coordinator "Ask a human') && (error as { code?: number }).code === PAUSED)
        return
      if (performance.now() > end) throw error
    }
    await sleep(500)
  }
}

async function run(command: string): Promise<string> {
  const script = `muster() { "${process.execPath}" "${repository}src/bin/muster.ts" "$@"; }
    ${command.replaceAll('http://127.0.0.1:8080', muster.url)}`
  const { stdout } = await promisify(execFile)('bash', ['-c', `set -eo pipefail\n${script}`], {
    cwd: folder,
    env: { PATH: process.env.PATH, MUSTER_DATA_DIR: muster.dataDir, ...variables },
    timeout: 120_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  const exported = /^export (\w+)=/.exec(command)?.[1]
  if (exported) variables[exported] = (await run(`${command}\nprintf %s "$${exported}"`.replace(/^export /, ''))).trim()
  return stdout
}

/** Variables that earlier commands of the page have exported. */
const variables: Record<string, string> = {}
