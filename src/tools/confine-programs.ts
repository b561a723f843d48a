// The program of an MCP server is somebody else's code. It must not read our environment (/proc/<us>/environ), our
// files of secrets, or those of other programs. The first of three ways that works is taken:
// - user: as root each project's programs run under a user of their own, which owns nothing but homes.
// - namespaces: an ordinary user has one uid only, so the program gets its own view of the machine: its own processes,
//   and neither the data folder nor other homes. The program cannot undo that view: the mounts belong to an outer user
//   namespace, and the program runs in an inner one.
// - same_user: the program runs as our own user, if the operator allows it.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, chown, mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '../db/embedded/private-file.ts'
import { conflict } from '../kernel/errors.ts'

export type Way = 'user' | 'namespaces' | 'same_user'

export interface ProgramStart {
  file: string
  args: readonly string[]
  env: Record<string, string>
  /** The home of the program's server: private, writable, kept while this process lives. */
  cwd: string
  /** Null if the program runs as our own user. */
  user: { uid: number; gid: number } | null
}

interface Program {
  projectId: string
  /** The name of the server; unique within the project. */
  name: string
  command: string
  args: readonly string[]
  env: Record<string, string>
}

export interface ConfinedPrograms {
  /** Rejects with CONFLICT if programs cannot be kept from our secrets. */
  start(program: Program): Promise<ProgramStart>
  /** Removes the home of a server that is gone. */
  forget(server: { projectId: string; name: string }): Promise<void>
  /** Removes the homes of all servers of these projects. */
  forgetProjects(projectIds: ReadonlySet<string>): Promise<void>
  /** Removes all homes. Must be called after the programs have ended. */
  stop(): Promise<void>
}

export interface ConfineOptions {
  path: string
  hidden: readonly string[]
  /** This file names this process's homes. The next process removes the homes that a killed one left. */
  noteFile?: string
  maySameUser: boolean
  /** For tests: used instead of trying which ways work. */
  ways?: readonly Way[]
}

const REFUSAL =
  'Programs of MCP servers are refused here: Muster runs neither as root nor where it may make user namespaces, ' +
  'so it cannot keep its secrets from them. Use a url, or set MUSTER_MCP_SAME_USER=on to run them as its own user.'

export function createConfinedPrograms(options: ConfineOptions): ConfinedPrograms {
  let way: Way | null = null
  let parent: Promise<string> | null = null
  const homes = new Map<string, Promise<string>>()

  /** A way that works is remembered; one that fails is tried again: an administrator may have changed the machine. */
  async function findWay(): Promise<Way> {
    if (way !== null) return way
    const offered = options.ways ?? ['user', 'namespaces']
    for (const each of offered) {
      if (!(await worksHere(each))) continue
      way = each
      return each
    }
    if (options.maySameUser) return 'same_user'
    throw conflict(REFUSAL)
  }

  async function makeParent(): Promise<string> {
    const made = await realpath(await mkdtemp(join(tmpdir(), HOMES)))
    if (options.noteFile !== undefined) {
      await removeEarlier(options.noteFile)
      await writePrivateFile(options.noteFile, made)
    }
    // The folder can be entered but not listed; each home belongs to its owner alone.
    await chmod(made, 0o711)
    return made
  }

  async function makeHome(name: string, user: { uid: number; gid: number } | null): Promise<string> {
    parent ??= makeParent()
    const home = join(await parent, createHash('sha256').update(name).digest('hex').slice(0, 16))
    await mkdir(home, { mode: 0o700, recursive: true })
    if (user !== null) await chown(home, user.uid, user.gid)
    return home
  }

  function homeOf(server: { projectId: string; name: string }, user: { uid: number; gid: number } | null) {
    const name = nameOf(server)
    const known = homes.get(name)
    if (known) return known
    const made = makeHome(name, user)
    homes.set(name, made)
    made.catch(() => homes.delete(name))
    return made
  }

  async function forgetHome(name: string): Promise<void> {
    const home = homes.get(name)
    homes.delete(name)
    if (home) await removeHome(await home)
  }

  return {
    async start(program) {
      const { command, args } = program
      const found = await findWay()
      const user = found === 'user' ? await userOf(program.projectId) : null
      const cwd = await homeOf(program, user)
      const env = { PATH: options.path, HOME: cwd, ...program.env }
      if (found !== 'namespaces') return { file: command, args, env, cwd, user }
      const hidden = await Promise.all(options.hidden.map((folder) => realpath(folder).catch(() => folder)))
      return { ...inNamespaces([command, ...args], cwd, hidden), env, cwd, user }
    },

    forget: (server) => forgetHome(nameOf(server)),

    async forgetProjects(projectIds) {
      const meant = [...homes.keys()].filter((name) => projectIds.has(name.slice(0, name.indexOf('/'))))
      await Promise.all(meant.map(forgetHome))
    },

    async stop() {
      homes.clear()
      const made = parent
      parent = null
      if (made !== null) await removeHome(await made)
    },
  }
}

const HOMES = 'muster-mcp-'

async function removeEarlier(noteFile: string): Promise<void> {
  const earlier = await readFile(noteFile, 'utf8').catch(() => '')
  // The file may hold anything; only a folder with such a name is removed.
  if (/^\/(?:[^/]+\/)*muster-mcp-[A-Za-z0-9]{6}$/.test(earlier)) await removeHome(earlier)
}

const nameOf = ({ projectId, name }: { projectId: string; name: string }): string => `${projectId}/${name}`

/** A program that was killed a moment ago may still write; its last files then stay in the temporary folder. */
async function removeHome(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
}

// Below 65,536, the limit in a container of an ordinary user, and above the ids that tools give to people.
const FIRST_UID = 40_000
const UIDS = 20_000

/** Every process computes the same user, so that programs of two projects are strangers on the whole machine. */
async function userOf(projectId: string): Promise<{ uid: number; gid: number }> {
  const taken = await idsWithNames()
  let place = createHash('sha256').update(projectId).digest().readUInt32BE() % UIDS
  while (taken.has(FIRST_UID + place)) place = (place + 1) % UIDS
  return { uid: FIRST_UID + place, gid: FIRST_UID + place }
}

async function idsWithNames(): Promise<Set<number>> {
  const files = await Promise.all(['/etc/passwd', '/etc/group'].map((file) => readFile(file, 'utf8').catch(() => '')))
  const ids = files.join('\n').match(/^[^:\n]*:[^:\n]*:\d+/gm) ?? []
  return new Set(ids.map((line) => Number(line.slice(line.lastIndexOf(':') + 1))))
}

// The home is entered first and bound back after its parent was covered. The shell is the namespace's first process:
// when it or the program ends, the kernel ends all others.
const SCRIPT = `
path=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
home=$1
shift
cd "$home" || exit 126
mount -t tmpfs -o mode=711,size=1m none "\${home%/*}" && mkdir "$home" && mount -c --bind . "$home" && cd "$home" || exit 126
while [ "$1" != -- ]; do
  [ ! -d "$1" ] || mount -t tmpfs -o mode=000,size=4k none "$1" || exit 126
  shift
done
shift
inner=$(command -v unshare)
PATH=$path
unset PWD OLDPWD
"$inner" "$@"
exit $?
`

function inNamespaces(command: readonly string[], home: string, hidden: readonly string[]) {
  const uid = process.getuid?.() ?? 0
  const gid = process.getgid?.() ?? 0
  const outer = ['--user', '--map-root-user', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
  const inner = ['--user', `--map-user=${uid}`, `--map-group=${gid}`, '--', ...command]
  return { file: UNSHARE, args: [...outer, '/bin/sh', '-c', SCRIPT, 'sh', home, ...hidden, '--', ...inner] }
}

const UNSHARE = '/usr/bin/unshare'

async function worksHere(way: Way): Promise<boolean> {
  if (way === 'same_user') return true
  if (way === 'user') {
    if (process.getuid?.() !== 0) return false
    return succeeds('/bin/sh', ['-c', ':'], await userOf(''))
  }
  if (process.platform !== 'linux') return false
  const home = await mkdtemp(join(tmpdir(), 'muster-mcp-try-'))
  try {
    await mkdir(join(home, 'home'))
    const { file, args } = inNamespaces(['/bin/sh', '-c', ':'], join(await realpath(home), 'home'), [])
    return await succeeds(file, args, null)
  } finally {
    await removeHome(home)
  }
}

function succeeds(file: string, args: readonly string[], user: { uid: number; gid: number } | null): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      const child = spawn(file, args, { env: { PATH: '/usr/bin:/bin' }, cwd: '/', stdio: 'ignore', ...user })
      child.once('error', () => resolve(false))
      child.once('exit', (code) => resolve(code === 0))
    } catch {
      resolve(false) // some failures are thrown at once
    }
  })
}
