// The peer that the HTTP edge is measured against: Fastify and pg and nothing else. It has no credentials, no limits,
// no headers and no metrics, and a plain JSON schema on both sides. It writes the row of an API key and its audit row,
// in two ways: /one-statement does the least work, with one prepared statement, and /transaction is the form that most
// people write.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import pg from 'pg'

interface KeyInput {
  name: string
  role: string
}

interface KeyRow {
  id: string
  expires_at: Date | null
  last_used_at: Date | null
  created_at: Date
}

const COLUMNS = 'id, project_id, name, role, prefix, expires_at, last_used_at, created_at'
const INSERT_KEY = `insert into api_keys (id, project_id, name, role, prefix, key_hash) values ($1, $2, $3, $4, $5, $6)
  returning ${COLUMNS}`
const AUDIT_COLUMNS = `id, action, actor_type, actor_id, request_id, address, project_id, target_type, target_id, details`
const ONE_STATEMENT = `with made as (${INSERT_KEY}), noted as (
    insert into audit_log (${AUDIT_COLUMNS}) values ($7, $8, $9, $10, $11, $12, $13, $14, $15, $16))
  select * from made`
const INSERT_AUDIT = `insert into audit_log (${AUDIT_COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

const [databaseUrl = '', poolSize = '', projectId = ''] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString: databaseUrl, max: Number(poolSize) })
const app = Fastify()

const text = { type: 'string' }
const optionalText = { type: 'string', nullable: true }
const schema = {
  body: {
    type: 'object',
    required: ['name', 'role'],
    properties: { name: text, role: { enum: ['admin', 'member', 'viewer'] } },
    additionalProperties: false,
  },
  response: {
    201: {
      type: 'object',
      properties: {
        id: text,
        project_id: text,
        name: text,
        role: text,
        prefix: text,
        expires_at: optionalText,
        last_used_at: optionalText,
        created_at: text,
        key: text,
      },
    },
  },
}

app.get('/readyz', async () => ({ status: 'ready' }))

app.post<{ Body: KeyInput }>('/one-statement', { schema }, async (request, reply) => {
  const { key, keyValues, auditValues } = newRow(request.body, request.id, request.ip)
  const { rows } = await pool.query<KeyRow>({
    name: 'make',
    text: ONE_STATEMENT,
    values: [...keyValues, ...auditValues],
  })
  reply.code(201)
  return { ...rows[0], key }
})

app.post<{ Body: KeyInput }>('/transaction', { schema }, async (request, reply) => {
  const { key, keyValues, auditValues } = newRow(request.body, request.id, request.ip)
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query<KeyRow>(INSERT_KEY, keyValues)
    await client.query(INSERT_AUDIT, auditValues)
    await client.query('commit')
    reply.code(201)
    return { ...rows[0], key }
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
})

process.once('SIGTERM', async () => {
  await app.close()
  await pool.end()
})
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })

function newRow({ name, role }: KeyInput, requestId: string, address: string) {
  const id = randomUUID()
  const key = `mk_${randomBytes(32).toString('base64url')}`
  const prefix = key.slice(0, 11)
  const details = JSON.stringify({ name, role, prefix })
  return {
    key,
    keyValues: [id, projectId, name, role, prefix, createHash('sha256').update(key).digest()],
    auditValues: [randomUUID(), 'key.create', 'key', projectId, requestId, address, projectId, 'key', id, details],
  }
}
