import { READY_CHANNEL } from '../journal/wake.ts'
import { LOWEST_ID } from '../kernel/id.ts'
import { defaultSettings } from '../kernel/project.ts'
import type { SetsOff } from '../objects/write-statements.ts'

/** The delivery id of events to agents that skip: the same for all, so that one version has one entry. */
const SAME_FOR_ALL = LOWEST_ID

/** The input of an agent that reacts: shown to its model as it stands. `c` is the change. */
export const reactionInput = (c: string): string => `jsonb_build_object(
  'event', ${c}.event,
  'object', jsonb_build_object('id', ${c}.id, 'type', ${c}.type, 'key', ${c}.key, 'version', ${c}.version,
    'properties', ${c}.properties),
  'previous_version', nullif(${c}.version - 1, 0),
  'actor', jsonb_build_object('type', ${c}.actor_type, 'id', ${c}.actor_id))`

/**
 * Reactions are part of the statement that changes objects, each at most once. The matching rules are found by index,
 * each rule claims its entry of the processing log by an insert that only one can win, and the runs are queued with it:
 * there is no moment at which a change is committed and its reactions are not. Rules that do not match cost nothing
 * (measured from 10 to 1,000). `isAnnounced`: the commit tells the processes that work on runs.
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
        insert into agent_runs (id, project_id, agent_id, trigger, input, max_steps, timeout, entry_id, chain_depth)
        select e.run_id, c.project_id, a.id, jsonb_build_object('type', 'reaction', 'entry_id', e.id), ${reactionInput('c')},
          a.max_steps, a.default_timeout, e.id, c.depth + 1
        from entries e join agents a on a.id = e.agent_id join change c on c.id = e.graph_object_id
        where e.run_id is not null
        returning id
      )`,
    started: isAnnounced
      ? `(select count(pg_notify('${READY_CHANNEL}', '')) from started)`
      : '(select count(*) from started)',
  }
}
