// B7: the pages in docs/ say what the source says.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { z } from 'zod'
import { docsFolder, generatePages } from '../docs/generate/pages.ts'
import { validateFlow } from '../src/flows/definition/validate.ts'
import { builtInPatterns } from '../src/flows/machine/built-in-patterns.ts'
import { sharedFields } from '../src/kernel/flow.ts'

test('B7 the generated parts of docs/ are current: npm run docs writes them', async () => {
  for (const { name, before, now } of await generatePages())
    assert.ok(before === now, `docs/${name} is out of date: npm run docs writes it anew`)
})

test('B7 the guide of each pattern explains every field of its own, and its example is valid', () => {
  const known = { isAgent: () => true, isFunction: (name: string) => name.startsWith('muster.') }
  for (const { type, schema, guide } of builtInPatterns.all) {
    assert.ok(guide && schema instanceof z.ZodObject, type)
    const own = Object.keys(schema.shape).filter((field) => field !== 'type' && !(field in sharedFields))
    assert.deepEqual(Object.keys(guide.fields), own)
    const checked = validateFlow(guide.example.root, known, builtInPatterns)
    assert.ok(checked.isValid, JSON.stringify(checked))
    assert.equal(guide.example.root.type, type)
    assert.doesNotMatch(JSON.stringify(guide.example), /'/, 'the example can be put between single quotes')
  }
})

test('B7 links between the pages lead somewhere', async () => {
  for await (const name of glob('*.md', { cwd: docsFolder })) {
    const text = await readFile(new URL(name, docsFolder), 'utf8')
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue
      const [file = '', anchor] = target.split('#')
      const url = file === '' ? new URL(name, docsFolder) : new URL(file, docsFolder)
      assert.ok(existsSync(url), `${name} links to ${target}`)
      if (anchor === undefined) continue
      const anchors = (await readFile(url, 'utf8')).matchAll(/^#+ (.*)$/gm)
      const known = [...anchors].map(([, heading = '']) => anchorOf(heading))
      assert.ok(known.includes(anchor), `${name} links to ${target}`)
    }
  }
})

test('the paths that README, ARCHITECTURE and CONTRIBUTING name are there', async () => {
  const files: string[] = []
  for await (const file of glob('{src,ui,test,bench,bin,docs,examples,migrations}/**', { exclude: isPackage }))
    files.push(file)
  for (const page of ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']) {
    const text = await readFile(page, 'utf8')
    const named = [...text.matchAll(/`([\w./-]+\/[\w.-]+\.(?:ts|tsx|mjs|sql|json|md))`/g)].map(([, path = '']) => path)
    assert.ok(page === 'README.md' || named.length > 10, `${page} names ${named.length} paths`)
    const missing = named.filter((path) => !files.some((file) => file === path || file.endsWith(`/${path}`)))
    assert.deepEqual(missing, [], page)
  }
})

const isPackage = (path: string): boolean => path.includes('node_modules')

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-')
