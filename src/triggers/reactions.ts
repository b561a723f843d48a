import { insertRunsSql } from '../journal/insert-run.ts'
import { READY_CHANNEL } from '../journal/wake.ts'
import { LOWEST_ID } from '../kernel/id.ts'
import { defaultSettings } from '../kernel/project.ts'
import type { SetsOff } from '../objects/write-statements.ts'

/** The delivery id of events to agents that skip: the same for all, so that one version has one entry. */
const SAME_FOR_ALL = LOWEST_ID

/** The input of a reacting agent, shown to its model unchanged. `c` is the change. */
const REACTION_INPUT = `jsonb_build_object(
  'event', c.event,
  'object', jsonb_build_object('id', c.id, 'type', c.type, 'key', c.key, 'version', c.version, 'properties', c.properties),
  'previous_version', nullif(c.version - 1, 0),
  'actor', jsonb_build_object('type', c.actor_type, 'id', c.actor_id))`

/** SQL that inserts the runs of reactions: `e` is the entry of the processing log, `a` its agent, `c` the change. */
export const reactionRuns = ({ runId, depth }: { runId: string; depth: string }, from: string): string =>
  insertRunsSql(
    {
      id: runId,
      project_id: 'a.project_id',
      agent_id: 'a.id',
      trigger: `jsonb_build_object('type', 'reaction', 'entry_id', e.id)`,
      input: REACTION_INPUT,
      max_steps: 'a.max_steps',
      timeout: 'a.default_timeout',
      entry_id: 'e.id',
      chain_depth: `${depth} + 1`,
    },
    from,
  )

/**
 * Reactions are part of the statement that changes objects; each happens at most once. Rules are found by index, each
 * claims its entry by an insert that only one transaction can win, and the runs are queued with the entry: a change is
 * never committed without its reactions. Rules that do not match cost nothing (measured from 10 to 1,000). With
 * `isAnnounced` the commit notifies the processes that execute runs.
 */
export function reactions({ isAnnounced }: { isAnnounced: boolean }): SetsOff {
  return {
    parts: `, chain as (
        select p.id as project_id,
          coalesce((p.settings->>'reaction_chain_limit')::int, ${defaultSettings.reaction_chain_limit}) as longest
        from projects p where p.id in (select project_id from change)
      ), entries as (
        insert into processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, delivery, depth,
          status, run_id, error_message, completed_at)
        select gen_random_uuid(), c.project_id, r.agent_id, c.id, c.version, c.event,
          case when r.is_parallel then c.delivery else '${SAME_FOR_ALL}' end, c.depth,
          case when c.depth < longest then 'pending' else 'skipped' end,
          case when c.depth < longest then gen_random_uuid() end,
          case when c.depth >= longest then 'Agents have made changes in answer to each other ' || c.depth
            || ' times in a row, and reaction_chain_limit is ' || longest || '.' end,
          case when c.depth >= longest then muster.now() end
        from change c
        join reaction_rules r on r.project_id = c.project_id and r.object_type in (c.type, '*') and r.event = c.event
        join chain on chain.project_id = c.project_id
        where not (c.actor_type = 'agent' and (r.ignores_agents or (r.ignores_self and r.agent_id = c.actor_id)))
        on conflict do nothing
        returning id, agent_id, run_id, graph_object_id
      ), started as (
        ${reactionRuns(
          { runId: 'e.run_id', depth: 'c.depth' },
          `from entries e join agents a on a.id = e.agent_id join change c on c.id = e.graph_object_id
           where e.run_id is not null`,
        )}
        returning id
      )`,
    started: isAnnounced
      ? `(select count(pg_notify('${READY_CHANNEL}', '')) from started)`
      : '(select count(*) from started)',
  }
}
