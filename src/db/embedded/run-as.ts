import { lchown, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

// PostgreSQL refuses to run as root. A Muster that runs as root starts it as another user, who must reach its files.

export interface RunAs {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

const enter = 0o1
const read = 0o4

/**
 * The user that the server runs as; null means Muster's own. The owner of an existing cluster keeps it: a person's
 * cluster must go on working for that person.
 */
export async function chooseRunAs(cluster: string): Promise<RunAs | null> {
  if (process.getuid?.() !== 0) return null
  const users = parsePasswd(await readFile('/etc/passwd', 'utf8'))
  const owner = await stat(cluster).catch(() => null)
  if (owner !== null && owner.uid !== 0) {
    const name = users.find(({ uid }) => uid === owner.uid)?.name ?? `uid ${owner.uid}`
    return { name, uid: owner.uid, gid: owner.gid }
  }
  const user = users.find(({ name }) => name === 'postgres') ?? users.find(({ name }) => name === 'nobody')
  if (user) return user
  throw new Error(
    'PostgreSQL does not run as root, and there is no user "postgres" or "nobody" to run it as: start Muster as an ordinary user, or set DATABASE_URL.',
  )
}

/** The first step on the way to `path` (`path` included) that the user cannot pass: a closed folder, or a file. */
export async function firstObstacle(path: string, user: RunAs): Promise<string | null> {
  const real = await realpath(path)
  for (const step of [...foldersAbove(real), real]) if (!(await isOpenTo(step, user))) return step
  return null
}

export async function giveTree(path: string, user: RunAs): Promise<void> {
  await lchown(path, user.uid, user.gid)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const child = join(path, entry.name)
    if (entry.isDirectory()) await giveTree(child, user)
    else await lchown(child, user.uid, user.gid)
  }
}

function foldersAbove(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [...foldersAbove(parent), parent]
}

/** A folder must be passable, not listable; a file must be readable. Further groups do not count: spawn drops them. */
async function isOpenTo(path: string, user: RunAs): Promise<boolean> {
  const found = await stat(path)
  const bits = found.uid === user.uid ? found.mode >> 6 : found.gid === user.gid ? found.mode >> 3 : found.mode
  return (bits & (found.isDirectory() ? enter : read)) !== 0
}

function parsePasswd(text: string): RunAs[] {
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':')
    // macOS lists nobody as -2, which spawn does not take.
    if (!name || !uid || !gid || !/^\d+$/.test(uid) || !/^\d+$/.test(gid)) return []
    return [{ name, uid: Number(uid), gid: Number(gid) }]
  })
}
