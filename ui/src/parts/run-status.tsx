import { Status } from './status.tsx'
import { statusOfRun, type Waiting, waitWords } from './wait-words.ts'

/** The status of a run, with the reason of a pause or a wait on hover. */
export function RunStatus({ run }: { run: Waiting }) {
  const words = waitWords(run)
  return <Status of={statusOfRun(run)} {...(words !== null && { title: words })} />
}
