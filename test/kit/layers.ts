// The layer rule as a function: a file imports its own folder or a lower row, never up, never sideways.
import { dirname, normalize } from 'node:path'

export interface SourceFile {
  path: string
  text: string
}

const LAYERS: readonly (readonly string[])[] = [
  ['kernel'],
  ['db', 'observe', 'egress', 'secrets'],
  ['journal', 'queue', 'audit'],
  ['identity', 'models', 'prompts', 'tools', 'agents'],
  ['objects'],
  ['tasks'],
  ['runs'],
  ['flows', 'genui'],
  ['org', 'triggers', 'supervisor'],
  ['evals'],
  ['api'],
  ['bin'],
]

const FORBIDDEN_NAMES = /(^|\/)(index|utils|helpers|types|common|manager|service)\.ts$/
const SOURCE_LINES = 400
const TEST_LINES = 600

export function findBrokenRules(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => [...brokenSize(file), ...brokenName(file), ...brokenImports(file)])
}

const isTest = (path: string): boolean => path.endsWith('.test.ts') || path.startsWith('test/')

function brokenSize({ path, text }: SourceFile): string[] {
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
  const limit = isTest(path) ? TEST_LINES : SOURCE_LINES
  return lines > limit ? [`${path} has ${lines} lines; the limit is ${limit}: split it by concept`] : []
}

function brokenName({ path }: SourceFile): string[] {
  return FORBIDDEN_NAMES.test(path) ? [`${path} has a name that says nothing: call it after what it exports`] : []
}

function brokenImports({ path, text }: SourceFile): string[] {
  if (!path.startsWith('src/') || isTest(path)) return []
  const folder = folderOf(path)
  const layer = layerOf(folder)
  if (layer === -1) return [`${path}: the folder ${folder} has no layer`]
  return importsOf(text).flatMap((specifier) => {
    const target = normalize(`${dirname(path)}/${specifier}`)
    if (target === 'package.json') return []
    if (!target.startsWith('src/')) return [`${path} imports ${specifier}, which is outside src`]
    const targetFolder = folderOf(target)
    if (targetFolder === folder || layerOf(targetFolder) < layer) return []
    return [`${path} imports ${layerOf(targetFolder) > layer ? 'up' : 'sideways'}: ${specifier}`]
  })
}

const folderOf = (path: string): string => path.split('/')[1] ?? ''
const layerOf = (folder: string): number => LAYERS.findIndex((row) => row.includes(folder))

/** Static imports and exports, bare imports and dynamic ones, as far as they are relative. */
function importsOf(text: string): string[] {
  const pattern = /(?:\bfrom\s*|\bimport\s*\(?\s*)['"](\.[^'"]+)['"]/g
  return [...text.matchAll(pattern)].map((match) => match[1] ?? '')
}
