// Finds the line of the author's own code at which an app module failed to load, and the file that an import meant.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { basename, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A hint for an import without its ending, or with the ending of compiled code; Node resolves neither. */
export function guessImport(error: unknown): string {
  const url = error instanceof Error && 'url' in error && typeof error.url === 'string' ? error.url : ''
  if (!url.startsWith('file:')) return ''
  const meant = `${fileURLToPath(url).replace(/\.[cm]?js$/, '')}.ts`
  return existsSync(meant)
    ? `. There is ${basename(meant)}: imports of your own files name the file with its ending`
    : ''
}

interface Place {
  file: string
  line: number
  column: number
}

/** `src/app.ts:3:12`, or null if no file of the author is to blame. `files` are those that were being loaded. */
export async function sayPlace(error: unknown, files: Iterable<string>): Promise<string | null> {
  if (!(error instanceof Error)) return null
  const place = inExcerpt(error.stack ?? '') ?? inFrames(error.stack ?? '') ?? (await inSources(error, files))
  if (place === null) return null
  const near = relative(process.cwd(), place.file)
  return `${near.startsWith('..') ? place.file : near}:${place.line}:${place.column}`
}

/** A stack may begin with the file, its line, and an excerpt whose last line has `^` below the faulty column. */
function inExcerpt(stack: string, name?: string): Place | null {
  const [, file, line, excerpt = ''] = /^(?:file:\/\/)?(\S.*):(\d+)\n([\s\S]*?)^[A-Za-z]*Error\b/m.exec(stack) ?? []
  if (file === undefined) return null
  const lines = excerpt.split('\n').filter((each) => each.trim() !== '')
  const mark = lines.find((each) => /^\s*\^+\s*$/.test(each))
  // The end of the file has no mark.
  const column = (mark?.indexOf('^') ?? lines.at(-1)?.length ?? 0) + 1
  return { file: name ?? decodeURI(file), line: Number(line), column }
}

const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/)?\/.*?):(\d+):(\d+)\)?$/
const OURS = fileURLToPath(new URL('../', import.meta.url))

/** Frames of Node itself have no path; a library that the author called is not to blame. */
function inFrames(stack: string): Place | null {
  for (const frame of stack.split('\n')) {
    const [, at, line, column] = FRAME.exec(frame) ?? []
    if (at === undefined) continue
    const file = at.startsWith('file:') ? fileURLToPath(at) : at
    if (!file.startsWith(OURS) && isAuthors(file)) return { file, line: Number(line), column: Number(column) }
  }
  return null
}

export const isAuthors = (file: string): boolean => !file.includes('/node_modules/')

const CHECKED_WITHIN_MS = 5_000

/** Node keeps the place of some syntax errors to itself: the files are parsed once more, by another process. */
async function inSources(error: Error, files: Iterable<string>): Promise<Place | null> {
  if (!(error instanceof SyntaxError)) return null
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => '')
    const source = /\.[cm]?ts$/.test(file) ? stripTypeScriptTypes(text) : text // keeps every place
    const said = await checkSyntax(source)
    const place = said.includes(error.message) ? inExcerpt(said, file) : null
    if (place) return place
  }
  return null
}

function checkSyntax(source: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const options = { timeout: CHECKED_WITHIN_MS, env: {} }
  const child = execFile(process.execPath, ['--check', '--input-type=module'], options, (_, __, stderr) =>
    resolve(stderr),
  )
  child.stdin?.on('error', () => {}).end(source)
  return promise
}
