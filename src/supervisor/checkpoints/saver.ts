// LangGraph's checkpointer over our tables. Only checkpoints.ts imports this file, on demand: it loads LangGraph.

import type { RunnableConfig } from '@langchain/core/runnables'
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint'
import type { Db } from '../../db/pool.ts'
import { defined } from '../../kernel/defined.ts'
import { decodeFields, decodeValue, encodeValue, type OwnClass } from './plain-values.ts'
import {
  type CheckpointPlace,
  listCheckpoints,
  type ReadCheckpoint,
  readWrites,
  type StoredCheckpoint,
} from './read-checkpoints.ts'
import { removeThreads } from './remove-checkpoints.ts'
import type { CheckpointKey, PutCheckpoint } from './write-checkpoints.ts'

export interface SaverOptions {
  db: Db
  read: ReadCheckpoint
  put: PutCheckpoint
  /** The saver writes and reads only rows of this project. */
  projectId: string
}

export class Saver extends BaseCheckpointSaver {
  readonly #db: Db
  readonly #read: ReadCheckpoint
  readonly #put: PutCheckpoint
  readonly #projectId: string

  constructor({ db, read, put, projectId }: SaverOptions) {
    super(serialiser)
    this.#db = db
    this.#read = read
    this.#put = put
    this.#projectId = projectId
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const place = this.#placeOf(config)
    const stored = place && (await this.#read(place))
    return stored ? this.#tupleOf(stored) : undefined
  }

  override async *list(
    config: RunnableConfig,
    { limit, before, filter }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    this.#checkProject(config)
    const threadId = textIn(config, 'thread_id')
    const checkpointNs = textIn(config, 'checkpoint_ns')
    const checkpointId = textIn(config, 'checkpoint_id')
    const beforeId = before && textIn(before, 'checkpoint_id')
    const asked = defined({
      projectId: this.#projectId,
      threadId: threadId || undefined,
      checkpointNs,
      checkpointId: checkpointId || undefined,
      before: beforeId || undefined,
      metadata: filter && encodeValue('The filter', filter, { isRead: true }),
      limit,
    })
    const stored = listCheckpoints(this.#db, asked)
    for await (const one of stored) yield await this.#tupleOf(one)
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { checkpointId: parentId, ...thread } = this.#requirePlace(config)
    const key = { ...thread, checkpointId: checkName('checkpoint_id', checkpoint.id) }
    const { channel_values: values, ...rest } = checkpoint
    const channels = Object.entries(newVersions)
      .filter(([channel]) => Object.hasOwn(values, channel))
      .map(([channel, version]) => ({
        channel: checkName('channel', channel),
        version: checkName('version', String(version)),
        value: encodeValue(`The channel ${channel}`, values[channel], { own: ownOf(channel, 'DeltaSnapshot') }),
      }))
    await this.#put({
      kind: 'checkpoint',
      ...key,
      parentId,
      checkpoint: encodeValue('The checkpoint', rest, { isRead: true }),
      metadata: encodeValue('The metadata', metadata, { isRead: true }),
      channels,
    })
    return configOf(key)
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const place = this.#requirePlace(config)
    const encoded = writes.map(([channel, value], index) => ({
      place: WRITES_IDX_MAP[channel] ?? index,
      channel: checkName('channel', channel),
      value: encodeValue(`The write to ${channel}`, value, { own: ownOf(channel, 'Overwrite') }),
    }))
    await this.#put({
      kind: 'writes',
      ...place,
      checkpointId: checkName('checkpoint_id', place.checkpointId),
      taskId: checkName('task_id', taskId),
      // A task that was resumed twice writes both answers at one index, and the last counts.
      writes: [...new Map(encoded.map((write) => [write.place, write])).values()],
    })
  }

  override async deleteThread(threadId: string): Promise<void> {
    await removeThreads(this.#db, this.#projectId, [checkName('thread_id', threadId)])
  }

  /**
   * Branches that begin at one checkpoint would count to the same versions, and read each other's values. The fraction
   * makes their versions differ.
   */
  override getNextVersion(current: number | undefined): number {
    return Math.floor(current ?? 0) + 1 + Math.floor(Math.random() * 1e9) / 1e9
  }

  #placeOf(config: RunnableConfig): CheckpointPlace | null {
    this.#checkProject(config)
    const threadId = textIn(config, 'thread_id')
    if (threadId === undefined) return null
    return {
      projectId: this.#projectId,
      threadId: checkName('thread_id', threadId),
      checkpointNs: textIn(config, 'checkpoint_ns') ?? '',
      checkpointId: textIn(config, 'checkpoint_id') || null,
    }
  }

  #requirePlace(config: RunnableConfig): CheckpointPlace {
    const place = this.#placeOf(config)
    if (!place) throw new TypeError('A checkpoint needs a thread: set configurable.thread_id.')
    return place
  }

  /** A saver serves one project; a config that names another project was made for another saver. */
  #checkProject(config: RunnableConfig): void {
    const named = textIn(config, 'project_id')
    if (named !== undefined && named !== this.#projectId) {
      throw new TypeError('configurable.project_id names another project than the one of this saver.')
    }
  }

  async #tupleOf(stored: StoredCheckpoint): Promise<CheckpointTuple> {
    const { checkpoint, metadata, values, writes, parentId, ...place } = stored
    const key = { ...place, projectId: this.#projectId }
    // Both were written by put.
    const whole = {
      ...(decodeValue(checkpoint) as Omit<Checkpoint, 'channel_values'>),
      channel_values: values === null ? {} : decodeFields(values),
    }
    if (whole.v < 4 && parentId !== null) await this.#addSends(whole, { ...key, checkpointId: parentId })
    return {
      config: configOf(key),
      checkpoint: whole,
      metadata: decodeValue(metadata) as CheckpointMetadata,
      ...(parentId === null ? {} : { parentConfig: configOf({ ...key, checkpointId: parentId }) }),
      pendingWrites: writes === null ? [] : (decodeValue(writes) as CheckpointPendingWrite[]), // as put by putWrites
    }
  }

  /** Before version 4 of the format, the tasks to start were writes of the parent checkpoint and no channel. */
  async #addSends(checkpoint: Checkpoint, parent: CheckpointKey): Promise<void> {
    checkpoint.channel_values[TASKS] = decodeValue(await readWrites(this.#db, parent, TASKS))
    const versions = Object.values(checkpoint.channel_versions)
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined)
  }
}

const serialiser: SerializerProtocol = {
  dumpsTyped: async (value: unknown) => ['json', Buffer.from(encodeValue('The value', value))],
  loadsTyped: async (type, data) => {
    if (type !== 'json') throw new TypeError(`Checkpoints hold no values of the type ${type}.`)
    return decodeValue(typeof data === 'string' ? data : Buffer.from(data).toString())
  },
}

const ownOf = (channel: string, other: OwnClass): OwnClass => (channel === TASKS ? 'Send' : other)

const configOf = ({ threadId, checkpointNs, checkpointId }: CheckpointKey): RunnableConfig => ({
  configurable: { thread_id: threadId, checkpoint_ns: checkpointNs, checkpoint_id: checkpointId },
})

function textIn(config: RunnableConfig, name: string): string | undefined {
  const value: unknown = config.configurable?.[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw new TypeError(`configurable.${name} must be a text.`)
  return value
}

/** Names are columns: PostgreSQL takes neither NUL nor halves of surrogate pairs. */
function checkName(what: string, name: unknown): string {
  if (typeof name === 'string' && name !== '' && !name.includes('\0') && name.isWellFormed()) return name
  throw new TypeError(`A ${what} must be a text that is not empty, without NUL and halves of surrogate pairs.`)
}
