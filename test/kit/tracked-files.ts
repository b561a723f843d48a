import { glob } from 'node:fs/promises'

/** The project's own files, whether or not this is a git checkout. */
export async function trackedFiles(): Promise<string[]> {
  const files: string[] = []
  const skip = (name: string): boolean => /(^|\/)(node_modules|\.git|\.muster|coverage)$/.test(name)
  for await (const file of glob('**/*', { exclude: skip })) files.push(file)
  return files.sort()
}
