// One side of a bench as a separate process that executes one round at a time on request: rounds of several sides can
// take turns, and each side keeps its own heap and its own warmed-up code.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export interface Side extends AsyncDisposable {
  /** Takes one question at a time. An error of the program is thrown here. */
  ask<Answer>(question: unknown): Promise<Answer>
}

/** No round takes this long; a side that is silent for longer hangs. */
const ANSWER_WITHIN_MS = 120_000

type Reply = { answer: unknown } | { error: string }

/**
 * `BENCH_PROFILE=<folder> npm run bench -- <name>` writes CPU profiles of the sides with this option into the folder.
 */
export function startSide(
  program: string,
  args: readonly string[],
  {
    flags = [],
    isProfiled = false,
    folder: cwd,
  }: { flags?: readonly string[]; isProfiled?: boolean /** The checkout of the program. */; folder?: string } = {},
): Side {
  const folder = process.env.BENCH_PROFILE
  const profiling = isProfiled && folder ? ['--cpu-prof', `--cpu-prof-dir=${folder}`] : []
  const env = { PATH: process.env.PATH ?? '' }
  const child = fork(cwd ? join(cwd, program) : program, args, { execArgv: [...flags, ...profiling], env, cwd })
  const gone = once(child, 'exit')
  return {
    ask: async <Answer>(question: unknown): Promise<Answer> => {
      const answered = once(child, 'message', { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
      answered.catch(() => child.kill())
      child.send({ question })
      const early = gone.then(() => [{ error: 'it ended before it had answered' }])
      const [reply] = (await Promise.race([answered, early])) as [Reply] // our own program, see answerQuestions
      if ('error' in reply) throw new Error(`${program}: ${reply.error}`)
      return reply.answer as Answer // as above
    },
    [Symbol.asyncDispose]: async () => {
      if (child.connected) child.disconnect()
      await gone
    },
  }
}

/** The other end, called by the program of a side. The program ends when the parent process disconnects. */
export function answerQuestions<Question>(answer: (question: Question) => Promise<unknown>): void {
  process.on('message', (message: { question: Question }) => {
    const reply = (what: Reply): void => void process.send?.(what)
    answer(message.question).then(
      (answered) => reply({ answer: answered }),
      (error: unknown) => reply({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
  })
  process.once('disconnect', () => process.exit())
}
