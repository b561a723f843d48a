/**
 * Runs a command that must tidy up when it is interrupted: Ctrl-C and SIGTERM abort the signal instead of ending the
 * process, and the error that the command then throws is shown.
 */
export async function untilInterrupted<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const interruption = new AbortController()
  const interrupt = (name: NodeJS.Signals): void => interruption.abort(new Error(`Stopped by ${name}.`))
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
  try {
    return await work(interruption.signal)
  } finally {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
  }
}
