import type { ReadRecord } from './parts.ts'

/** Larger outputs are not journalled a second time. */
const MOST_OUTPUT_BYTES = 1_048_576

/** The results of the last stage, in the order of the source, read from the record. */
export async function* readOutputs(read: ReadRecord, lastStage: number): AsyncGenerator<unknown> {
  for await (const event of read({ stage: lastStage })) {
    if (event.kind !== 'items.completed' || event.data.stage !== lastStage) continue
    for (const [, value] of event.data.results) yield value
  }
}

/** The list of results, and true if its JSON is over a mebibyte. */
export async function readOutput(
  read: ReadRecord,
  lastStage: number,
): Promise<{ values: unknown[]; isLarge: boolean }> {
  const values: unknown[] = []
  let bytes = 1
  for await (const value of readOutputs(read, lastStage)) {
    bytes += Buffer.byteLength(JSON.stringify(value)) + 1
    values.push(value)
  }
  return { values, isLarge: bytes > MOST_OUTPUT_BYTES }
}
