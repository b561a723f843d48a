import { START_PATIENCE_MS, whileUnavailable } from '../db/patience.ts'

/** The database may answer slowly at a start, because runs of an earlier start may hold every connection at first. */
export const patiently = <Result>(work: () => Promise<Result>): Promise<Result> =>
  whileUnavailable(START_PATIENCE_MS, work)
