import type { AppFunction } from '../../kernel/app.ts'
import type { ToolContext } from '../../kernel/tool.ts'

/** Calls a function that gives items. Clients read the message of an error alone; its stack is in the log. */
export async function openSource(
  { name, run }: { name: string; run: AppFunction },
  argument: unknown,
  context: ToolContext,
): Promise<unknown> {
  const tell = (error: unknown): never => {
    const { log, signal, run_id, key, attempt } = context
    if (!signal.aborted) {
      log.warn({ flow_run_id: run_id, function: name, key, attempt, err: error }, 'a function of a flow threw')
    }
    throw error
  }
  let given: unknown
  try {
    given = await run(argument as never, context) // its author's word
  } catch (error) {
    tell(error)
  }
  if (given === null || typeof given !== 'object' || Array.isArray(given)) return given
  const iterable = given as Partial<AsyncIterable<unknown> & Iterable<unknown>> // asked for each of them
  if (!iterable[Symbol.asyncIterator] && !iterable[Symbol.iterator]) return given
  return {
    [Symbol.asyncIterator]: (): AsyncIterator<unknown> => {
      const values = iterable[Symbol.asyncIterator]?.()
      const plain = values ? undefined : iterable[Symbol.iterator]?.()
      return {
        // One wait for each item of an asynchronous iterator: there may be millions.
        next: async () => {
          try {
            return values ? await values.next() : await nextOf(plain)
          } catch (error) {
            return tell(error)
          }
        },
        return: async () => (await (values ?? plain)?.return?.()) ?? DONE,
      }
    },
  }
}

const DONE = { done: true, value: undefined } as const

/** A plain iterable may give promises. */
async function nextOf(values: Iterator<unknown> | undefined): Promise<IteratorResult<unknown>> {
  const step = values?.next()
  return step && !step.done ? { done: false, value: await step.value } : DONE
}
