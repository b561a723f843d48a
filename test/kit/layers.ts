// The layer rule as a function: a file imports its own folder or a lower row, never up, never sideways. Inside a folder
// that has rooms, the same holds for the rooms. Types count as imports.
import { dirname, normalize } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

export interface SourceFile {
  path: string
  text: string
}

const LAYERS: readonly (readonly string[])[] = [
  ['kernel'],
  ['db', 'observe', 'egress', 'secrets', 'cli'],
  ['queue'],
  ['journal', 'audit'],
  ['identity', 'models', 'prompts', 'tools', 'agents'],
  ['objects'],
  ['tasks'],
  ['runs'],
  ['flows', 'genui'],
  ['org', 'triggers', 'supervisor', 'app-modules'],
  ['evals'],
  ['api'],
  ['bin'],
]

/** The name for files that lie directly in a folder with rooms, above all its rooms. */
const ABOVE = '.'

/** The rooms of a folder, from the lowest row to the highest. */
const ROOMS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  flows: [
    ['machine'],
    ['templates', 'recommend'],
    ['definition'],
    ['pools', 'pipeline'],
    ['history'],
    ['execution'],
    ['alerts'],
  ],
  api: [['http'], ['feed'], ['routes'], [ABOVE]],
}

/** The rooms of the console. Files in no room are above all of them. */
const UI_ROOMS: readonly (readonly string[])[] = [['api'], ['parts'], ['app'], ['pages'], [ABOVE]]

const FORBIDDEN_NAMES = /(^|\/)(index|utils|helpers|types|common|manager|service)\.tsx?$/
const SOURCE_LINES = 400
const TEST_LINES = 600
const FUNCTION_LINES = 100

export function findBrokenRules(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => [
    ...brokenSize(file),
    ...brokenName(file),
    ...brokenPlace(file),
    ...brokenImports(file),
    ...brokenUiImports(file),
  ])
}

/** Circles of imports among these files, types included: each as the path from a file back to itself. */
export function findCircles(files: readonly SourceFile[]): string[] {
  const imports = new Map(files.map(({ path, text }) => [path, importsOf(text).map((to) => resolved(path, to))]))
  const circles: string[] = []
  const seen = new Set<string>()
  const way: string[] = []
  const visit = (path: string): void => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' → '))
    if (seen.has(path)) return
    seen.add(path)
    way.push(path)
    for (const target of imports.get(path) ?? []) visit(target)
    way.pop()
  }
  for (const { path } of files) visit(path)
  return circles
}

/** Functions of more lines than the limit, those inside others as well. */
export function findLongFunctions(files: readonly SourceFile[]): string[] {
  const sources = [...sourcesAmong(files), ...files.filter(({ path }) => path.startsWith('ui/') && !isTest(path))]
  return sources.flatMap(({ path, text }) => {
    const lineAt = (offset: number): number => text.slice(0, offset).split('\n').length
    return functionsIn(parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' })).flatMap(({ start, end }) => {
      const lines = lineAt(end) - lineAt(start) + 1
      if (lines <= FUNCTION_LINES) return []
      return [`${path}:${lineAt(start)} is a function of ${lines} lines; the limit is ${FUNCTION_LINES}`]
    })
  })
}

/** Passes the names on that authors of app modules need: it is the package's interface. */
const INTERFACE = 'src/flows/definition/app-module.ts'

/** Names that two files export, types included. A file that passes a name on exports it, too. */
export function findNamesExportedTwice(files: readonly SourceFile[]): string[] {
  const paths = new Map<string, string[]>()
  for (const { path, text } of sourcesAmong(files).filter((file) => file.path !== INTERFACE))
    for (const name of exportsOf(text)) paths.set(name, [...(paths.get(name) ?? []), path])
  return [...paths].flatMap(([name, all]) => (all.length > 1 ? [`${name} is exported by ${all.join(' and ')}`] : []))
}

const sourcesAmong = (files: readonly SourceFile[]): SourceFile[] =>
  files.filter(({ path }) => path.startsWith('src/') && !isTest(path))

interface Span {
  start: number
  end: number
}

/** The functions of a syntax tree, whatever way they are written. */
function functionsIn(node: unknown): Span[] {
  if (Array.isArray(node)) return node.flatMap(functionsIn)
  if (typeof node !== 'object' || node === null || !('type' in node)) return []
  const inside = Object.values(node).flatMap(functionsIn)
  return /^(Arrow)?Function(Declaration|Expression)$/.test(String(node.type))
    ? [node as typeof node & Span, ...inside]
    : inside
}

function exportsOf(text: string): string[] {
  const declared = /^export (?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm
  const passedOn = /^export (?:type )?\{([^}]*)\}/gm
  return [
    ...Array.from(text.matchAll(declared), ([, name = '']) => name),
    ...Array.from(text.matchAll(passedOn), ([, names = '']) => names.split(','))
      .flat()
      .flatMap((each) => /(\w+)\s*$/.exec(each)?.[1] ?? []),
  ]
}

const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path) || path.startsWith('test/')

function brokenSize({ path, text }: SourceFile): string[] {
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
  const limit = isTest(path) ? TEST_LINES : SOURCE_LINES
  return lines > limit ? [`${path} has ${lines} lines; the limit is ${limit}: split it by concept`] : []
}

function brokenName({ path }: SourceFile): string[] {
  return FORBIDDEN_NAMES.test(path) ? [`${path} has a name that says nothing: name it after its export`] : []
}

function brokenPlace({ path }: SourceFile): string[] {
  const folder = folderOf(path)
  const rooms = ROOMS[folder]
  if (!path.startsWith('src/') || !rooms) return []
  const room = roomOf(path)
  if (room === ABOVE && rowOf(rooms, room) === -1)
    return [`${path} lies in no room: the folder has rooms (${rooms.flat().join(', ')})`]
  return rowOf(rooms, room) === -1 ? [`${path}: the room ${room} has no row in ${folder}`] : []
}

function brokenImports({ path, text }: SourceFile): string[] {
  if (!path.startsWith('src/') || isTest(path)) return []
  const folder = folderOf(path)
  const layer = rowOf(LAYERS, folder)
  if (layer === -1) return [`${path}: the folder ${folder} has no layer`]
  return importsOf(text).flatMap((specifier) => {
    const target = resolved(path, specifier)
    if (target === 'package.json') return []
    if (!target.startsWith('src/')) return [`${path} imports ${specifier}, which is outside src`]
    const targetFolder = folderOf(target)
    if (targetFolder === folder) return brokenRoom(path, target, specifier)
    const targetLayer = rowOf(LAYERS, targetFolder)
    if (targetLayer < layer) return []
    return [`${path} imports ${targetLayer > layer ? 'up' : 'sideways'}: ${specifier}`]
  })
}

/** The console imports the kernel, and otherwise itself alone. A page does not import another page. */
function brokenUiImports({ path, text }: SourceFile): string[] {
  if (!path.startsWith('ui/src/') || isTest(path)) return []
  const [room, page] = uiRoomOf(path)
  return importsOf(text).flatMap((specifier) => {
    const target = resolved(path, specifier)
    if (target.startsWith('src/kernel/')) return []
    if (!target.startsWith('ui/src/')) return [`${path} imports ${specifier}, which is outside ui and src/kernel`]
    const [targetRoom, targetPage] = uiRoomOf(target)
    if (rowOf(UI_ROOMS, targetRoom) > rowOf(UI_ROOMS, room))
      return [`${path} imports up from ${room} to ${targetRoom}: ${specifier}`]
    const isBeside = room === 'pages' && targetRoom === 'pages' && page !== targetPage
    return isBeside ? [`${path} imports sideways from ${page} to ${targetPage}: ${specifier}`] : []
  })
}

/** The room of a file of the console, and the folder in the room. */
function uiRoomOf(path: string): [string, string] {
  const [room = ABOVE, folder = ''] = path.split('/').slice(2, -1)
  return [room, folder]
}

/** Refuses an import of a room beside or above. Files that lie in no room are refused by brokenPlace. */
function brokenRoom(path: string, target: string, specifier: string): string[] {
  const rooms = ROOMS[folderOf(path)]
  const room = roomOf(path)
  const targetRoom = roomOf(target)
  if (!rooms || room === targetRoom) return []
  const row = rowOf(rooms, room)
  const targetRow = rowOf(rooms, targetRoom)
  if (row === -1 || targetRow < row) return []
  return [`${path} imports ${targetRow > row ? 'up' : 'sideways'} from ${room} to ${targetRoom}: ${specifier}`]
}

/** The row of a folder among the layers, the lowest first. */
export const rowOfFolder = (folder: string): number => rowOf(LAYERS, folder)

const folderOf = (path: string): string => path.split('/')[1] ?? ''
const roomOf = (path: string): string => path.split('/').slice(2, -1)[0] ?? ABOVE
const rowOf = (rows: readonly (readonly string[])[], name: string): number =>
  rows.findIndex((row) => row.includes(name))
const resolved = (path: string, specifier: string): string => normalize(`${dirname(path)}/${specifier}`)

/** Relative imports: static imports and exports, bare imports and dynamic imports. */
function importsOf(text: string): string[] {
  const pattern = /(?:\bfrom\s*|\bimport\s*\(?\s*)['"](\.[^'"]+)['"]/g
  return [...text.matchAll(pattern)].map((match) => match[1] ?? '')
}
