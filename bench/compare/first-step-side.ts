// The latency of a first step in the checkout that the second argument names: see runs/first-step.ts there.
import { chdir } from 'node:process'
import { pathToFileURL } from 'node:url'
import { percentile } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import type { Measuring } from '../runs/first-step.ts'

const SAMPLES = 1_000

const [url = '', folder = ''] = process.argv.slice(2)
chdir(folder)
const { measureRuns } = await importFrom<typeof import('../runs/first-step.ts')>('bench/runs/first-step.ts')
const { startSide } = await importFrom<typeof import('../kit/side.ts')>('bench/kit/side.ts')
let measuring: Promise<Measuring> | null = null

answerQuestions(async () => {
  measuring ??= measureRuns(url, startSide('bench/runs/starter.ts', [url]))
  const { measure } = await measuring
  const samples: number[] = []
  for (let taken = 0; taken < SAMPLES; taken++) samples.push(await measure())
  return { p50: percentile(samples, 0.5), p99: percentile(samples, 0.99) }
})

function importFrom<Module>(file: string): Promise<Module> {
  return import(pathToFileURL(`${folder}/${file}`).href)
}
