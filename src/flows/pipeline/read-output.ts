import type { ReadRecord } from './parts.ts'

/** Above this the output is told elsewhere than in what the pipeline gave. */
export const MOST_OUTPUT_BYTES = 1_048_576

/** What the last stage gave, in the order of the source, straight from the record. */
export async function* readOutputs(read: ReadRecord, lastStage: number): AsyncGenerator<unknown> {
  for await (const event of read({ stage: lastStage })) {
    if (event.kind !== 'items.completed' || event.data.stage !== lastStage) continue
    for (const [, value] of event.data.results) yield value
  }
}

/** The list of them, or `{truncated: true}` where its JSON is over a mebibyte. */
export async function readOutput(read: ReadRecord, lastStage: number): Promise<unknown[] | { truncated: true }> {
  const values: unknown[] = []
  let bytes = 1
  for await (const value of readOutputs(read, lastStage)) {
    bytes += Buffer.byteLength(JSON.stringify(value)) + 1
    if (bytes > MOST_OUTPUT_BYTES) return { truncated: true }
    values.push(value)
  }
  return values
}
