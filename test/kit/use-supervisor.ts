import assert from 'node:assert/strict'
import type { Caller } from './use-routes.ts'

/** The supervisor system with the offline model: a run, a chat, the variants and the prompts. */
export async function useSupervisor({ ask, word }: Caller, project: string): Promise<void> {
  const headers = { 'x-project-id': project }
  const body = { input: { task: word } }
  const run = await ask<{ metadata: { run_id: string }; result: { status: string } }>('POST /v1/agent/run', {
    headers,
    body,
  })
  assert.equal(run.body.result.status, 'DONE')
  for (const part of ['', '/events']) await ask(`GET /v1/agent/runs/${run.body.metadata.run_id}${part}`, { headers })

  const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: word }] }
  const answer = await ask('POST /v1/agent/chat', { headers, body: { id: word, messages: [message] } })
  assert.match(answer.text, /"status":"DONE"/)
  await ask(`GET /v1/agent/chat/${encodeURIComponent(word)}/stream`, { headers })

  const systems = `/api/projects/${project}/systems`
  await ask(`GET ${systems}`)
  const blue = await ask<Record<string, unknown>>(`GET ${systems}/blue`)
  const { variant: _, updated_at: __, ...config } = blue.body
  await ask(`PUT ${systems}/blue`, { body: config })

  const prompts = `/api/projects/${project}/prompts`
  const variant = `${prompts}/a_prompt/variants/blue`
  for (const content of [word, `${word} again`]) {
    await ask(`PUT ${variant}`, { body: { messages: [{ role: 'system', content }] } })
  }
  for (const path of [prompts, variant, `${variant}/versions`, `${variant}/diff`]) await ask(`GET ${path}`)
  await ask(`POST ${variant}/rollback`, { body: { version: 1 } })
  await ask('POST /v1/prompts/get', { headers, body: { prompt_id: 'a_prompt', variant_id: 'blue' } })
  await ask(`DELETE ${variant}`)
}
