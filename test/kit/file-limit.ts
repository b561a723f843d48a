// Loaded into each test file's process before the file itself. `--test-timeout` ends a test that hangs, but not a file
// whose tests are over while a server or a timer keeps its process alive.
const LIMIT_MS = 15 * 60_000

if (process.env.NODE_TEST_CONTEXT !== undefined) {
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ')
    process.stderr.write(`${process.argv[1]} did not end within ${LIMIT_MS / 60_000} minutes. Still open: ${open}\n`)
    process.exit(1)
  }, LIMIT_MS).unref()
}
