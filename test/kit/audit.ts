// Separate clusters for tests of the audit chain. An entry becomes final when all older transactions of the cluster
// have ended, so on the shared cluster test files would wait for each other; and a restore needs two clusters.
import { randomUUID } from 'node:crypto'
import { recordAudit } from '../../src/audit/record.ts'
import { loadMigrations, migrate } from '../../src/db/migrate.ts'
import type { Db, Pool } from '../../src/db/pool.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import { atEnd } from './at-end.ts'
import { createTestPool, migrationsFolder } from './database.ts'
import { startTestServer, withClient } from './test-server.ts'

export interface AuditCluster {
  createDatabase(): Promise<Pool>
  nextXid(): Promise<number>
  /** Moves the counter of transaction ids. */
  spendXids(count: number): Promise<void>
}

export async function startAuditCluster(): Promise<AuditCluster> {
  const server = await startTestServer()
  atEnd(() => server.stop())
  const inServer = (sql: string) => withClient(server.url, (client) => client.query(sql))
  await inServer('alter system set autovacuum = off') // its transactions would sometimes hold back xmin
  await inServer('select pg_reload_conf()')
  const migrations = await loadMigrations(migrationsFolder)
  return {
    createDatabase: async () => {
      const name = `audit_${randomUUID().replaceAll('-', '')}`
      await inServer(`create database ${name} template template0`)
      const url = new URL(server.url)
      url.pathname = `/${name}`
      await migrate({ url: url.href, migrations, log: silentLog })
      const pool = createTestPool(url.href, 5)
      atEnd(() => pool.end())
      return pool
    },
    nextXid: async () => {
      const { rows } = await inServer('select pg_snapshot_xmax(pg_current_snapshot())::text as next')
      return Number(rows[0]?.next)
    },
    spendXids: (count) =>
      withClient(server.url, async (client) => {
        for (let spent = 0; spent < count; spent++) await client.query('select pg_current_xact_id()')
      }),
  }
}

export const note = (db: Db, action: string, details: Record<string, unknown> = {}): Promise<void> =>
  recordAudit(db, { action, actor: systemActor, projectId: null, targetType: 'test', targetId: 'ä', details })

/** Changes rows like a person who is allowed to switch the triggers off. */
export async function tamper(pool: Pool, sql: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query(`begin; set local session_replication_role = replica; ${sql}; commit`)
  } finally {
    client.release()
  }
}

/** Moves the audit log as a backup and a restore do: the rows unchanged, the sequence ahead of them. */
export async function restoreAudit(from: Pool, to: Pool): Promise<void> {
  for (const table of ['audit_log', 'audit_blocks']) {
    const { rows } = await from.query<{ line: string }>(`select row_to_json(t)::text as line from ${table} t`)
    await to.query(
      `insert into ${table} overriding system value
       select row.* from unnest($1::text[]) line, json_populate_record(null::${table}, line::json) row`,
      [rows.map((row) => row.line)],
    )
  }
  await to.query(
    `select setval(pg_get_serial_sequence('audit_log', 'seq'), greatest((select max(seq) from audit_log), 1))`,
  )
}
