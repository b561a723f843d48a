// Hooks as their owners make them and as senders use them, signed by the standard's own library.
import { Webhook } from 'standardwebhooks'
import type { NewHook } from '../../src/kernel/hook.ts'
import { newId } from '../../src/kernel/id.ts'
import type { TestApp } from './app.ts'

export interface MadeHook extends NewHook {
  projectId: string
  agentId: string
  /** The path of the hook itself, below /api. */
  path: string
}

export async function createHook(
  kit: TestApp,
  projectId: string,
  agent: Parameters<TestApp['createAgent']>[1] = {},
): Promise<MadeHook> {
  const { id: agentId } = await kit.createAgent(projectId, { trigger_type: 'webhook', ...agent })
  const list = `/api/projects/${projectId}/agents/${agentId}/hooks`
  const { status, body, text } = await kit.call<NewHook>(`POST ${list}`, { body: { name: 'a hook' } })
  if (status !== 201) throw new Error(`the hook was not created: ${text}`)
  return { ...body, projectId, agentId, path: `${list}/${body.id}` }
}

/** The headers of a signed delivery. `payload` is the body, byte for byte. */
export function signDelivery(
  secret: string,
  payload: string,
  { id = `msg_${newId()}`, atMs = Date.now() }: { id?: string; atMs?: number } = {},
): Record<string, string> {
  const at = new Date(Math.floor(atMs / 1_000) * 1_000)
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(at.getTime() / 1_000),
    'webhook-signature': new Webhook(secret).sign(id, at, payload),
  }
}
