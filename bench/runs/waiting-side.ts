// Thousands of runs in one process whose model has not answered yet, and their memory. Needs --expose-gc.
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import { POOL_SIZE, slotsFor, startBenchWorker } from './bench-worker.ts'

const [url = ''] = process.argv.slice(2)

answerQuestions<{ runs: number }>(async ({ runs }) => {
  let waiting = 0
  const allWait = Promise.withResolvers<void>()
  const model: LanguageModelV4 = {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'silent',
    supportedUrls: {},
    doStream: async ({ abortSignal }) => {
      if (++waiting === runs) allWait.resolve()
      return { stream: silence(abortSignal) }
    },
    doGenerate: async () => {
      throw new Error('this model only streams')
    },
  }
  const worker = await startBenchWorker(url, () => model, { slots: slotsFor(runs) })
  const before = weigh()
  await timeInFlight(runs, POOL_SIZE, () => worker.start())
  await allWait.promise
  const after = weigh()
  return { bytesPerRun: (after - before) / runs }
})

function silence(signal: AbortSignal | undefined): ReadableStream<never> {
  return new ReadableStream({
    start(controller) {
      signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
    },
  })
}

function weigh(): number {
  const { gc } = globalThis
  if (!gc) throw new Error('start this with --expose-gc')
  // The second collection frees objects that the finalizers of the first have released.
  gc()
  gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
