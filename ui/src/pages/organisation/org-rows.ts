// The tree as rows, so that a thousand agents can be folded, searched and drawn by the screenful.
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import { everyAgent } from '../../api/organisation.ts'

export interface OrgRow {
  agent: OrgAgent
  /** Agents at the top are at 1. */
  level: number
  place: number
  among: number
  /** Null: it has no subordinates. */
  isOpen: boolean | null
}

export interface RowOptions {
  /** The rows that a person chose to fold or unfold. */
  choices: ReadonlyMap<string, boolean>
  /** The agent that is to be seen. */
  chosen: string | undefined
  find: string
}

/** Larger organisations are folded at first, except the one agent at the top. */
const MANY = 200

export function orgRows(tree: readonly OrgAgent[], { choices, chosen, find }: RowOptions): OrgRow[] {
  const words = find.trim().toLowerCase()
  const isSmall = everyAgent(tree).length <= MANY
  const onTheWay = new Set(chosen === undefined ? [] : seniorsOf(tree, chosen))
  const rows: OrgRow[] = []
  const add = (agents: readonly OrgAgent[], level: number): void => {
    const shown = words === '' ? agents : agents.filter((agent) => isFound(agent, words))
    for (const [place, agent] of shown.entries()) {
      const isOpen =
        words !== '' ||
        (choices.get(agent.id) ?? (isSmall || (level === 1 && tree.length === 1) || onTheWay.has(agent.id)))
      const has = agent.subordinates.length > 0
      rows.push({ agent, level, place: place + 1, among: shown.length, isOpen: has ? isOpen : null })
      if (has && isOpen) add(agent.subordinates, level + 1)
    }
  }
  add(tree, 1)
  return rows
}

function isFound(agent: OrgAgent, words: string): boolean {
  const texts = [agent.name, agent.role, agent.status, ...agent.competencies]
  return (
    texts.some((text) => text.toLowerCase().includes(words)) ||
    agent.subordinates.some((subordinate) => isFound(subordinate, words))
  )
}

/** The ids of the agents above this one. */
function seniorsOf(tree: readonly OrgAgent[], id: string): string[] {
  for (const agent of tree) {
    if (agent.subordinates.some((each) => each.id === id)) return [agent.id]
    const above = seniorsOf(agent.subordinates, id)
    if (above.length > 0) return [agent.id, ...above]
  }
  return []
}

/** The agent that suits best: it is available and knows this, has the least to do, and has the most tokens left. */
export function bestAgent(agents: readonly OrgAgent[], competency: string): OrgAgent | null {
  const able = agents.filter((agent) => knows(agent, competency) && isFree(agent))
  const [best = null] = able.toSorted((a, b) => a.load - b.load || left(b) - left(a) || (a.name < b.name ? -1 : 1))
  return best
}

const plain = (text: string): string => text.normalize('NFKC').toLowerCase().trim()
const knows = (agent: OrgAgent, competency: string): boolean =>
  agent.competencies.some((each) => plain(each) === plain(competency))
const left = ({ token_allocation: most, token_used: used }: OrgAgent): number =>
  most === null ? Number.MAX_SAFE_INTEGER : most - used
const isFree = (agent: OrgAgent): boolean => (agent.status === 'active' || agent.status === 'bored') && left(agent) > 0
