// Asks a server for /healthz every 50 ms, from a separate process, and reports the time of each answer. No request
// waits for the request before it: a server that stalls for a second is late with twenty answers.
import { answerQuestions } from '../kit/side.ts'

const EVERY_MS = 50

export type Question = { begin: string } | { end: true }

let stop: (() => Promise<number[]>) | null = null

answerQuestions<Question>(async (question) => {
  if ('begin' in question) stop = begin(`${question.begin}/healthz`)
  else return stop?.() ?? []
})

function begin(url: string): () => Promise<number[]> {
  const took: number[] = []
  const open = new Set<Promise<void>>()
  const ask = (): void => {
    const since = performance.now()
    const asked = fetch(url)
      .then(async (answer) => void (await answer.arrayBuffer()))
      // A missing answer counts as a late answer, which the next figure shows.
      .catch(() => {})
      .then(() => {
        took.push(performance.now() - since)
        open.delete(asked)
      })
    open.add(asked)
  }
  const timer = setInterval(ask, EVERY_MS)
  ask()
  return async () => {
    clearInterval(timer)
    await Promise.all(open)
    return took
  }
}
