// `Idempotency-Key` on creating POSTs: the same key and body give the same answer. The key's row is inserted in the
// transaction of the change, so a crash leaves both or neither, and a parallel request with the same key waits on the
// unique index. Answers are sealed: some hold a secret that is shown once.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { deleteInBatches } from '../../db/in-batches.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { invalidRequest, MusterError } from '../../kernel/errors.ts'
import { fault } from '../../kernel/fault.ts'
import type { Cipher } from '../../secrets/cipher.ts'
import { sha256 } from '../../secrets/hash.ts'

/** Runs the creating work, once per Idempotency-Key if one was sent, and answers with 201. */
export type Create = <Answer>(
  request: FastifyRequest,
  reply: FastifyReply,
  work: (db: Db) => Promise<Answer>,
) => Promise<Answer>

/** Runs `work` once per key, always in a transaction. Only the answer of `work` is kept; the reply is made afresh. */
export type Once = <Kept>(
  request: FastifyRequest,
  work: (tx: Db) => Promise<Kept>,
) => Promise<{ kept: Kept; replayed: boolean }>

export interface Idempotency {
  create: Create
  /** `create` for work of more than one statement: always in a transaction, with or without a key. */
  createTogether: Create
  once: Once
}

interface Claim {
  scope: string
  route: string
  key: string
}

const CREATED = 201

export function createIdempotency({ pool, cipher }: { pool: Pool; cipher: Cipher }): Idempotency {
  // Requests of one key queue up here before they take a connection, so twenty retries cannot empty the pool.
  const underWay = new Map<string, Promise<unknown>>()

  const createWith =
    (plainly: <Answer>(work: (db: Db) => Promise<Answer>) => Promise<Answer>): Create =>
    async (request, reply, work) => {
      const claim = claimOf(request)
      const answer = claim ? await queued(claim, () => createOnce(pool, cipher, claim, request.body, work)) : null
      const body = answer ? answer.body : await plainly(work)
      await fault('api.after_commit_before_reply')
      reply.code(CREATED)
      if (answer?.replayed) reply.header('idempotency-replayed', 'true')
      return body
    }

  return {
    create: createWith((work) => work(pool)),
    createTogether: createWith((work) => inTransaction(pool, work)),
    once: async (request, work) => {
      const claim = claimOf(request)
      const { body, replayed } = claim
        ? await queued(claim, () => createOnce(pool, cipher, claim, request.body, work))
        : { body: await inTransaction(pool, work), replayed: false }
      await fault('api.after_commit_before_reply')
      return { kept: body, replayed }
    },
  }

  async function queued<Result>(claim: Claim, run: () => Promise<Result>): Promise<Result> {
    const name = canonicalJson(claim)
    for (let earlier = underWay.get(name); earlier; earlier = underWay.get(name)) await earlier.catch(() => {})
    const mine = run()
    underWay.set(name, mine)
    try {
      return await mine
    } finally {
      underWay.delete(name)
    }
  }
}

const PRUNED_AT_ONCE = 2_000

/** Keys are kept for a day. */
export async function pruneIdempotencyKeys(pool: Pool, signal?: AbortSignal): Promise<void> {
  const sql = `delete from idempotency_keys where (scope, route, key) in (
    select scope, route, key from idempotency_keys
    where created_at < muster.now() - interval '24 hours' order by created_at limit ${PRUNED_AT_ONCE})`
  await deleteInBatches(pool, { lock: 'retention', signal }, { sql, atOnce: PRUNED_AT_ONCE })
}

function claimOf(request: FastifyRequest): Claim | null {
  const key = request.headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,254}$/.test(key)) {
    throw invalidRequest('Idempotency-Key must be 1 to 255 visible ASCII characters.')
  }
  const { id, ...below } = request.params as Record<string, string> // Fastify types params as unknown
  // Below the project the ids are part of the route: the same key for another agent is another request.
  const path = (request.routeOptions.url ?? '').replaceAll(/:(\w+)/g, (name, param) => below[param] ?? name)
  return { scope: request.projectId ?? id ?? 'instance', route: `${request.method} ${path}`, key }
}

async function createOnce<Answer>(
  pool: Pool,
  cipher: Cipher,
  claim: Claim,
  requestBody: unknown,
  work: (db: Db) => Promise<Answer>,
): Promise<{ body: Answer; replayed: boolean }> {
  const bodyHash = sha256(canonicalJson(requestBody))
  const context = { owner: claim.scope, name: `answer:${claim.route}:${claim.key}` }
  return inTransaction(pool, async (tx) => {
    const { rowCount } = await tx.query(
      `insert into idempotency_keys (scope, route, key, body_hash) values ($1, $2, $3, $4)
       on conflict (scope, route, key) do update set body_hash = excluded.body_hash, created_at = muster.now()
       where idempotency_keys.created_at < muster.now() - interval '24 hours'`,
      [claim.scope, claim.route, claim.key, bodyHash],
    )
    if (rowCount === 0) {
      const stored = await readAnswer(tx, claim, bodyHash)
      return { body: JSON.parse(cipher.open(stored, context).toString('utf8')) as Answer, replayed: true } // sealed by us
    }
    const body = await work(tx)
    await tx.query(
      'update idempotency_keys set status = $4, sealed_answer = $5 where scope = $1 and route = $2 and key = $3',
      [claim.scope, claim.route, claim.key, CREATED, cipher.seal(JSON.stringify(body), context)],
    )
    return { body, replayed: false }
  })
}

async function readAnswer(tx: Db, claim: Claim, bodyHash: Buffer): Promise<Buffer> {
  const { rows } = await tx.query<{ body_hash: Buffer; sealed_answer: Buffer | null }>(
    'select body_hash, sealed_answer from idempotency_keys where scope = $1 and route = $2 and key = $3',
    [claim.scope, claim.route, claim.key],
  )
  const row = rows[0]
  if (!row?.sealed_answer) throw new Error('an idempotency key was committed without its answer')
  if (!row.body_hash.equals(bodyHash)) {
    throw new MusterError('IDEMPOTENCY_MISMATCH', 'This Idempotency-Key was used with another body. Use a new key.')
  }
  return row.sealed_answer
}
