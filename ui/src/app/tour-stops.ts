// The stops of the tour: in the demo the things that are seen, elsewhere the areas.
import type { Agent } from '../../../src/kernel/agent.ts'
import type { FlowRun } from '../../../src/kernel/flow-run.ts'
import type { Run } from '../../../src/kernel/run.ts'
import type { Task } from '../../../src/kernel/task.ts'

/** The things of the demo that the tour leads to. One that is not there, or not any more, is undefined. */
export interface Things {
  flow?: Pick<FlowRun, 'id'> | undefined
  loop?: Pick<Run, 'id'> | undefined
  saver?: Pick<Agent, 'id' | 'name'> | undefined
  suggestion?: Pick<Task, 'id'> | undefined
  question?: Pick<Task, 'id'> | undefined
}

export interface Stop {
  title: string
  text: string
  address: string
  /** A selector of the place that is outlined, if it is on the page. */
  target: string
  /** True: the place is at the bottom of the window, so the card stands at the top. */
  isLow?: boolean
  /** Choices that lead elsewhere. */
  links: readonly { label: string; address: string; isForAdmins: boolean }[]
}

interface Plan {
  title: string
  /** Explains the area of the console. It is true in every project. */
  area: { text: string; place: string; target: string }
  /** Explains the thing of the demo. Null if the thing is not there. */
  demo?: (things: Things) => { text: string; place: string; target: string } | null
  isLow?: boolean
  links?: readonly { label: string; place: string; isForAdmins: boolean }[]
}

const LIST = 'main h1'

const HOME = {
  title: 'Home',
  text: 'Home shows what waits for you, what runs now and what failed, over all your projects. Every row leads to its page.',
  address: '/',
  target: 'main section[aria-label="Waits for you"]',
  links: [],
}
const OF_DEMO = ' The demo is a small shop at work. Its model runs inside Muster, so it needs no key and costs nothing.'

const PLANS: readonly Plan[] = [
  {
    title: 'A flow at work',
    area: {
      text: 'A flow runs many tasks by a plan that you can see. While it runs, its progress and its ETA move here.',
      place: '/flows',
      target: LIST,
    },
    demo: ({ flow }) =>
      flow
        ? {
            text: 'This flow launches a product, and starts again every four minutes. Its figures move as it works: the time so far, the time that is left (ETA), tokens and cost.',
            place: `/flows/${flow.id}`,
            target: '[data-tour="figures"]',
          }
        : null,
  },
  {
    title: "The queen's plan",
    area: {
      text: 'In a hierarchical flow a queen splits the goal, hands the parts to her workers and judges their results. New flow shows this pattern and the others.',
      place: '/flows',
      target: LIST,
    },
    demo: ({ flow }) =>
      flow
        ? {
            text: 'The queen is the lead of this flow. She split the goal into these tasks and gave each to a worker. The timeline beside it shows who works on which of them.',
            place: `/flows/${flow.id}`,
            target: '[aria-label="Queen\'s plan"]',
          }
        : null,
  },
  {
    title: 'A loop that was stopped',
    area: {
      text: 'Every run of an agent is here, with each step, its cost, and in plain words why it stopped. A run that repeats a failing call is ended by Muster.',
      place: '/runs',
      target: LIST,
    },
    demo: ({ loop }) =>
      loop
        ? {
            text: 'This agent repeated a call that failed each time. Muster saw the loop and ended the run. This sentence says why a run stopped, and the steps below show each call.',
            place: `/runs/${loop.id}`,
            target: '[data-tour="verdict"]',
          }
        : null,
  },
  {
    title: 'A budget that runs out',
    area: {
      text: 'Here you see which agent works for whom. An agent may have a budget of tokens. Its bar is amber from 90 % on and red from 95 %, and an agent without tokens pauses until somebody tops it up.',
      place: '/organisation',
      target: LIST,
    },
    demo: ({ saver }) =>
      saver
        ? {
            text: `${saver.name} has used most of its tokens: its bar is amber from 90 % on, and red from 95 %. Without tokens it pauses until somebody tops it up.`,
            place: `/organisation?agent=${saver.id}`,
            target: '[data-tour="budget"]',
          }
        : null,
  },
  {
    title: 'A suggestion to decide',
    area: {
      text: 'An agent in suggest mode changes nothing by itself. Its changes wait here, with a diff and a reason, until you approve or reject them.',
      place: '/inbox',
      target: LIST,
    },
    demo: ({ suggestion }) =>
      suggestion
        ? {
            text: 'This agent may only suggest. The diff shows the change it wants, and its reason is beside it. Approve or reject it with the buttons, or with the keys a and r.',
            place: `/inbox?item=${suggestion.id}`,
            target: `[id="item-${suggestion.id}"]`,
          }
        : null,
  },
  {
    title: 'A question to answer',
    area: {
      text: 'An agent that needs a decision of a person asks here. Its run waits, and goes on as soon as somebody answers.',
      place: '/inbox',
      target: LIST,
    },
    demo: ({ question }) =>
      question
        ? {
            text: 'This agent asks before it spends money. Its run waits without any cost, and goes on as soon as you answer.',
            place: `/inbox?item=${question.id}`,
            target: `[id="item-${question.id}"]`,
          }
        : null,
  },
  {
    title: 'Your turn',
    area: {
      text: 'Give the supervisor a task here: it plans the work, and its specialists do it. Or make an agent of your own. No key is needed for that. With a key of a provider your agents use its models; add one whenever you like.',
      place: '/playground',
      target: '[data-tour="message"]',
    },
    isLow: true,
    links: [
      { label: 'New agent', place: '/agents/new', isForAdmins: true },
      { label: 'Add a key', place: '/settings/providers', isForAdmins: true },
    ],
  },
]

/** Without a project there is only Home. Without things the stops explain the areas of the project. */
export function stopsOf(projectId: string | null, things: Things | null): Stop[] {
  const home = things === null ? HOME : { ...HOME, text: HOME.text + OF_DEMO }
  if (projectId === null) return [home]
  const below = `/projects/${projectId}`
  return [
    home,
    ...PLANS.map(({ title, area, demo, isLow = false, links = [] }) => {
      const { text, place, target } = (things && demo?.(things)) ?? area
      return {
        title,
        text,
        target,
        isLow,
        address: below + place,
        links: links.map((link) => ({ ...link, address: below + link.place })),
      }
    }),
  ]
}

export interface Read {
  flows: readonly Pick<FlowRun, 'id' | 'pattern' | 'status'>[]
  failed: readonly Pick<Run, 'id' | 'error_code'>[]
  agents: readonly Pick<Agent, 'id' | 'name' | 'token_used' | 'token_allocation'>[]
  waiting: readonly { id: string; kind: string }[]
}

const NEARLY_ALL = 0.9

/** Lists are newest first. A flow that runs comes before one that has ended. */
export function findThings({ flows, failed, agents, waiting }: Read): Things {
  const led = flows.filter(({ pattern }) => pattern === 'hierarchical')
  return {
    flow: led.find(({ status }) => status === 'running') ?? led[0],
    loop: failed.find(({ error_code }) => error_code === 'DOOM_LOOP'),
    saver: agents.find(
      ({ token_used: used, token_allocation: all }) => all !== null && used >= NEARLY_ALL * all && used < all,
    ),
    suggestion: waiting.find(({ kind }) => kind === 'suggestion'),
    question: waiting.find(({ kind }) => kind === 'question'),
  }
}
