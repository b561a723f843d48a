import { readFile } from 'node:fs/promises'

/** The whole example, without the comment at its head: the page explains it. */
export async function exampleSections(): Promise<Record<string, string>> {
  const source = await readFile(new URL('../../examples/bakery.ts', import.meta.url), 'utf8')
  return { example: ['```ts', source.replace(/^(\/\/.*\n)+/, '').trim(), '```'].join('\n') }
}
