// The id of a node of a flow run, and of its leaf if the node is one. The id is unique in the run, the same in
// every replay, stored in the journal and shown to people. Only this file writes and reads its grammar:
//
//   id      = name *mark *( "/" key [ "~" attempt ] ) [ "/" text ]
//   name    = the id that people gave the node, or "root" for a root without an id
//   mark    = "#" iteration | "~" attempt          each life around the named node, the outermost first
//   key     = word [ " " number ]                  a child that has no name of its own: "0", "aggregate", "map 3"
//   text    = word " " number " " anything         a leaf whose key holds words of a model: "do 1 read/write 0"
//
// An attempt behind a key belongs to a pattern that is tried again; a first attempt is left out. Marks are left out if
// all of them are 1. A text reaches to the end of the id and may hold any character: its leaf has no children.

/** An iteration of a loop, or an attempt of a pattern that is tried again. Both count from 1. */
export type Mark = `#${number}` | `~${number}`

export interface LeafId {
  name: string
  /** Empty if all marks are 1. */
  marks: readonly Mark[]
  /** The keys that lead down from the named node. */
  keys: readonly { key: string; attempt: number }[]
}

/** The name of a root without an id of its own. */
export const ROOT = 'root'

export function format({ name, marks, keys }: LeafId): string {
  return keys.reduce((parent, { key, attempt }) => idBelow(parent, key, attempt), idOfNamed(name, marks))
}

/** The id of a node with a name, in one of its lives. */
export const idOfNamed = (name: string, lives: readonly Mark[]): string => `${name}${marksOf(lives).join('')}`

/** The id of a child without a name of its own. */
export const idBelow = (parentId: string, key: string, attempt = 1): string =>
  attempt === 1 ? `${parentId}/${key}` : `${parentId}/${key}~${attempt}`

/** The first life needs no mark. Any other life is marked with all lives around it, each in its place. */
const marksOf = (lives: readonly Mark[]): readonly Mark[] => (lives.every(isFirst) ? [] : lives)

const isFirst = (mark: Mark): boolean => mark === '#1' || mark === '~1'
export const isAttempt = (mark: Mark): boolean => mark.startsWith('~')
export const isIteration = (mark: Mark): boolean => mark.startsWith('#')
export const numberIn = (mark: Mark): number => Number(mark.slice(1))

/**
 * The id of the leaf in the first life of the patterns around it: the same for every attempt at the same work. A leaf
 * that a queen gives out again is the same work, too. A question that the queen is asked again is another question.
 */
export function unitOf(id: string): string {
  if (!/~| again$/.test(id)) return id
  const { name, marks, keys } = parse(id)
  return format({
    name,
    marks: marks.map((mark) => (isAttempt(mark) ? '~1' : mark)),
    keys: keys.map(({ key }) => ({ key: key.replace(/^((?:do|part) .*) again$/s, '$1'), attempt: 1 })),
  })
}

const HEAD = /^([^/]*?)((?:[#~]\d+)*)(?:\/|$)/
const ATTEMPT = /^(.*)~(\d+)$/
const isText = (key: string): boolean => key.split(' ', 3).length === 3

export function parse(id: string): LeafId {
  const [whole = '', name = '', marks = ''] = HEAD.exec(id) ?? []
  return {
    name,
    marks: readMarks(marks),
    keys: id.length > name.length + marks.length ? readKeys(id, whole.length) : [],
  }
}

/** The regular expression lets only marks through. */
const readMarks = (marks: string): Mark[] => (marks.match(/[#~]\d+/g) ?? []) as Mark[]

function readKeys(id: string, from: number): LeafId['keys'] {
  const keys: { key: string; attempt: number }[] = []
  for (let at = from; at <= id.length; ) {
    const slash = id.indexOf('/', at)
    const end = slash === -1 ? id.length : slash
    const part = id.slice(at, end)
    if (isText(part)) return [...keys, { key: id.slice(at), attempt: 1 }]
    const [, key = part, attempt = 1] = ATTEMPT.exec(part) ?? []
    keys.push({ key, attempt: Number(attempt) })
    at = end + 1
  }
  return keys
}
