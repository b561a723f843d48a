// The common parts of tests of MCP: a project in a database of its own, and calls of tools as a run makes them.
import assert from 'node:assert/strict'
import { createEgress } from '../../src/egress/egress.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import type { McpServer, McpServerInput } from '../../src/kernel/mcp-server.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import type { CallTool } from '../../src/kernel/tool.ts'
import { createCipher } from '../../src/secrets/cipher.ts'
import { createConfinedPrograms } from '../../src/tools/confine-programs.ts'
import { executeTool, type ToolLimits, type ToolOutcome } from '../../src/tools/execute-tool.ts'
import { createMcp, type Mcp, type McpOptions } from '../../src/tools/mcp.ts'
import { atEnd } from './at-end.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

export interface McpKit extends TestDatabase {
  mcp: Mcp
  projectId: string
  register(input: McpServerInput, isInstanceAdmin?: boolean): Promise<McpServer>
  tool(server: string, name: string): Promise<CallTool>
  call(server: string, name: string, args?: unknown, options?: CallOptions): Promise<ToolOutcome>
}

export interface CallOptions extends Partial<ToolLimits> {
  signal?: AbortSignal
  emit?: (progress: unknown) => void
}

export async function createMcpKit(options: Partial<McpOptions> = {}): Promise<McpKit> {
  const database = await createTestDatabase()
  const egress = createEgress({ allow: [] })
  const mcp = createMcp({
    pool: database.pool,
    cipher: createCipher('test-secret-key'),
    egress,
    log: silentLog,
    programs: createConfinedPrograms({ path: '/usr/bin:/bin', hidden: [], maySameUser: true }),
    pingTimeoutMs: 300,
    ...options,
  })
  atEnd(async () => {
    await mcp.stop()
    await egress.close()
  })
  const projectId = newId()
  await database.pool.query('insert into projects (id, name) values ($1, $2)', [projectId, 'A project'])

  async function tool(server: string, name: string): Promise<CallTool> {
    const found = (await mcp.toolsOf(projectId, server))?.find((each) => each.name === name)
    assert.ok(found, `${server} has no tool ${name}`)
    return found
  }

  return {
    ...database,
    mcp,
    projectId,
    tool,
    register: async (input, isInstanceAdmin = true) => {
      const store = await mcp.prepare(projectId, input, { actor: systemActor, isInstanceAdmin })
      return store(database.pool)
    },
    call: async (server, name, args = {}, { signal, emit, ...limits } = {}) => {
      const found = await tool(server, name)
      const parsed = found.parse(args)
      assert.ok(parsed.ok, parsed.ok ? '' : parsed.message)
      return executeTool(
        found,
        parsed.args,
        {
          signal: signal ?? new AbortController().signal,
          key: 'the-key',
          attempt: 1,
          run_id: newId(),
          project_id: projectId,
          log: silentLog,
          emit: emit ?? (() => {}),
        },
        { timeoutMs: 60_000, outputLimitBytes: 262_144, ...limits },
      )
    },
  }
}

export const stdioFixture = (...args: string[]): { command: string; args: string[] } => ({
  command: process.execPath,
  args: [new URL('./mcp-stdio.ts', import.meta.url).pathname, ...args],
})

export const errorText = (outcome: ToolOutcome): string => {
  assert.equal(outcome.isError, true, JSON.stringify(outcome.result))
  return String((outcome.result as { error: unknown }).error) // executeTool promises this shape for an error
}
