/** Runs a command that must tidy up: Ctrl-C and SIGTERM abort the signal, and the error of the command is shown. */
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
