import { createHmac } from 'node:crypto'
import pg from 'pg'
import { superuser } from './cluster.ts'
import { databaseUrl, type Login, superuserLogin, withClient } from './probe.ts'

// A superuser reads files and runs programs by SQL, so Muster works under a role that only owns its database; the
// superuser sets that role up. Tables of earlier releases, which worked as the superuser, are handed over at the first
// start.

const appRole = 'muster_app'

/** The role's password follows from the superuser's, and not the other way round, so there is only one file to keep. */
export function appLogin(superuserPassword: string): Login {
  const password = createHmac('sha256', superuserPassword).update(appRole).digest('base64url')
  return { user: appRole, password }
}

/** Must be called once the database exists. Does nothing if the role is set up. */
export async function ensureAppRole(port: number, superuserPassword: string): Promise<void> {
  const login = appLogin(superuserPassword)
  if (await isSetUp(databaseUrl(port, login))) return
  await withClient(databaseUrl(port, superuserLogin(superuserPassword)), async (client) => {
    await client.query('begin')
    // PostgreSQL logs failed statements, and this one holds a password.
    await client.query(`set local log_min_error_statement = 'panic'`)
    const { rowCount } = await client.query('select from pg_roles where rolname = $1', [appRole])
    const rights = 'login nosuperuser nocreatedb nocreaterole noreplication nobypassrls'
    const password = pg.escapeLiteral(login.password)
    await client.query(`${rowCount === 0 ? 'create' : 'alter'} role ${appRole} ${rights} password ${password}`)
    await client.query(HAND_OVER)
    await client.query('commit')
  })
}

/** The role is set up if it owns the database, which is handed over last, in the same transaction as its contents. */
async function isSetUp(url: string): Promise<boolean> {
  try {
    return await withClient(url, async (client) => {
      const { rows } = await client.query<{ owns: boolean; rolsuper: boolean }>(
        `select pg_get_userbyid(datdba) = current_user as owns, rolsuper
         from pg_database, pg_roles where datname = current_database() and rolname = current_user`,
      )
      return rows[0]?.owns === true && !rows[0].rolsuper
    })
  } catch {
    return false // the superuser's attempt reports the failure
  }
}

/**
 * Hands over everything that the superuser owns outside the system's schemas. "reassign owned" refuses this, because
 * the cluster's first role owns the system itself. Sequences go with their tables, public with the database.
 */
const HAND_OVER = `
do $$
declare statement text;
begin
  for statement in
    with given as (
      select n.oid, n.nspname, r.oid as owner from pg_namespace n, pg_roles r
      where r.rolname = '${superuser}' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    )
    select format('alter schema %I owner to ${appRole}', g.nspname)
    from given g join pg_namespace n on n.oid = g.oid and n.nspowner = g.owner
    union all
    select format('alter table %s owner to ${appRole}', c.oid::regclass)
    from given g join pg_class c on c.relnamespace = g.oid and c.relowner = g.owner
    where c.relkind in ('r', 'p', 'v', 'm', 'f') or (c.relkind = 'S' and not exists (
      select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')))
    union all
    select format('alter routine %s owner to ${appRole}', p.oid::regprocedure)
    from given g join pg_proc p on p.pronamespace = g.oid and p.proowner = g.owner
    union all
    select format('alter type %s owner to ${appRole}', t.oid::regtype)
    from given g join pg_type t on t.typnamespace = g.oid and t.typowner = g.owner
    left join pg_class c on c.oid = t.typrelid
    where t.typtype in ('e', 'd', 'r') or c.relkind = 'c'
  loop
    execute statement;
  end loop;
  execute format('alter database %I owner to ${appRole}', current_database());
end $$`
