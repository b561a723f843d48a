// A delivery starts a run. Its webhook-id is inserted in the transaction of the run, so that the same delivery gives
// the same run, however often it comes, in any process, and around any crash.
import { isForeignKeyViolation } from '../db/failures.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import { explain, insertStarts, type Start } from '../runs/start.ts'
import type { FoundHook } from './find-hook.ts'

export interface Delivery {
  /** A delivery without a webhook-id is always new. */
  webhookId: string | null
  input: unknown
  requestId: string
  address: string
}

/** Returns the id of the run, also if an earlier delivery started the run. */
export type Deliver = (hook: FoundHook, delivery: Delivery) => Promise<string>

export function createDeliver(pool: Pool): Deliver {
  // Deliveries with the same id wait here for the first one, and hold no connection meanwhile.
  const underWay = new Map<string, Promise<string>>()

  return async (hook, delivery) => {
    if (hook.earlierRunId !== null) {
      if (hook.isUseDue) await noteUse(pool, hook.id)
      return hook.earlierRunId
    }
    if (delivery.webhookId === null) return start(pool, hook, delivery)
    const name = `${hook.id} ${delivery.webhookId}`
    for (let first = underWay.get(name); first; first = underWay.get(name)) {
      const runId = await first.catch(() => null)
      if (runId !== null) return runId
    }
    const mine = start(pool, hook, delivery)
    underWay.set(name, mine)
    try {
      return await mine
    } finally {
      underWay.delete(name)
    }
  }
}

async function start(pool: Pool, hook: FoundHook, delivery: Delivery): Promise<string> {
  const wanted = startOf(hook, delivery)
  try {
    return await inTransaction(pool, async (tx) => {
      const earlier = await claimWebhookId(tx, hook.id, delivery.webhookId, wanted.id)
      if (earlier !== null) return earlier
      const made = await insertStarts(tx, [wanted])
      if (!made.has(wanted.id)) await explain(tx, wanted)
      if (hook.isUseDue) await noteUse(tx, hook.id)
      return wanted.id
    })
  } catch (error) {
    // The hook was deleted after it was found.
    throw isForeignKeyViolation(error) ? notFound('hook') : error
  }
}

function startOf(hook: FoundHook, { webhookId, input, requestId, address }: Delivery): Start {
  const sent = webhookId === null ? {} : { webhook_id: webhookId }
  return {
    id: newId(),
    projectId: hook.projectId,
    agentId: hook.agentId,
    input,
    trigger: { type: 'webhook', hook_id: hook.id, ...sent },
    note: (runId) => ({
      action: 'hook.deliver',
      actor: { type: 'hook', id: hook.id, requestId, address },
      projectId: hook.projectId,
      targetType: 'run',
      targetId: runId,
      details: { agent_id: hook.agentId, trigger: 'webhook', ...sent },
    }),
  }
}

/** Returns the run that has this webhook-id, or null. Waits for a transaction that inserts the same id. */
async function claimWebhookId(tx: Db, hookId: string, webhookId: string | null, runId: string): Promise<string | null> {
  if (webhookId === null) return null
  const { rowCount } = await tx.query(
    {
      name: 'hook_claim',
      text: `insert into hook_deliveries (hook_id, webhook_id, run_id) values ($1, $2, $3)
             on conflict (hook_id, webhook_id) do nothing`,
    },
    [hookId, webhookId, runId],
  )
  if (rowCount === 1) return null
  const { rows } = await tx.query<{ run_id: string }>(
    'select run_id from hook_deliveries where hook_id = $1 and webhook_id = $2',
    [hookId, webhookId],
  )
  if (!rows[0]) throw conflict('An earlier delivery with this webhook-id expired at this moment. Try again.')
  return rows[0].run_id
}

/** One of several simultaneous uses writes the time; the others do not wait for the row. */
async function noteUse(db: Db, hookId: string): Promise<void> {
  await db.query(
    `update hooks set last_used_at = muster.now() where id in (
       select id from hooks where id = $1
         and (last_used_at is null or last_used_at < muster.now() - interval '1 minute')
       for no key update skip locked)`,
    [hookId],
  )
}
