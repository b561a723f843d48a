// The commands that people use daily. Each talks to a server over HTTP and to nothing else; its file is loaded when it
// is called. `bin/client-commands.ts` puts this table into the `muster` command.
import type { CommandEntry } from './command.ts'

const DETACH = ['--detach', 'print the id and do not wait'] as const
const MAX_STEPS = ['--max-steps <number>', 'the most model calls'] as const
const TIMEOUT = ['--timeout <ms>', 'the most milliseconds'] as const
const LIMIT = ['--limit <number>', 'how many to show (20)'] as const

export const clientCommands: readonly CommandEntry[] = [
  {
    usage: 'agents',
    summary: 'list the agents',
    examples: ['muster agents', 'muster agents --json'],
    load: async () => (await import('./commands/agents.ts')).agentsCommand,
  },
  {
    usage: 'run <agent> [input]',
    summary: 'start an agent and follow it',
    options: [
      ['--input <json>', 'an object or a text; @file reads a file, - the standard input'],
      MAX_STEPS,
      TIMEOUT,
      DETACH,
    ],
    examples: [
      'muster run Writer "two lines about rain"',
      'git diff | muster run Reviewer -',
      `muster run Intake --input '{"order": 17}'`,
    ],
    load: async () => (await import('./commands/run.ts')).runCommand,
  },
  {
    usage: 'runs',
    summary: 'list the runs, the newest first',
    options: [
      ['--agent <name>', 'only those of one agent'],
      ['--status <status>', 'queued, running, completed, failed, cancelled or paused'],
      LIMIT,
    ],
    examples: ['muster runs --agent Writer', 'muster runs --status paused'],
    load: async () => (await import('./commands/runs.ts')).runsCommand,
  },
  {
    usage: 'follow [run]',
    summary: 'follow a run or a flow run; without a name, the newest',
    options: [['--wait', 'keep following while the run waits for people or tokens']],
    examples: ['muster follow', 'muster follow Writer', 'muster follow 0199a6f0-5f3e', 'muster follow --json'],
    load: async () => (await import('./commands/follow.ts')).followCommand,
  },
  {
    usage: 'resume <run>',
    summary: 'continue a run or a flow run that stopped, failed or was cancelled',
    options: [
      ['--input <text>', 'what to tell it'],
      MAX_STEPS,
      TIMEOUT,
      ['--outcome <outcome>', 'done or not_done, if the outcome of a call is unknown'],
      ['--call <id>', 'the call that the outcome is about, if there are several'],
      ['--result <text>', 'the result of a call that was done'],
    ],
    examples: [
      'muster resume Writer',
      'muster resume Writer --max-steps 20',
      'muster resume 0199a6f0-5f3e --outcome done',
    ],
    load: async () => (await import('./commands/resume.ts')).resumeCommand,
  },
  {
    usage: 'fork <run>',
    summary: 'start a new run from a step of another; calls after that step may be repeated',
    options: [
      ['--after-step <number>', 'the last step that is taken over; 0 takes the input alone'],
      ['--input <text>', 'what to tell it'],
      ['--agent <name>', 'another agent'],
      ['--yes', 'do not ask, although calls may be repeated'],
      DETACH,
    ],
    examples: ['muster fork Writer --after-step 2', 'muster fork 0199a6f0-5f3e --after-step 0 --agent Editor'],
    load: async () => (await import('./commands/fork.ts')).forkCommand,
  },
  {
    usage: 'try-now <run>',
    summary: 'let the runs of an agent or a flow that wait for a provider try again at once',
    examples: ['muster try-now Writer', 'muster try-now 0199a6f0-5f3e'],
    load: async () => (await import('./commands/try-now.ts')).tryNowCommand,
  },
  {
    usage: 'cancel <run>',
    summary: 'cancel a run or a flow run',
    examples: ['muster cancel Writer', 'muster cancel 0199a6f0-5f3e'],
    load: async () => (await import('./commands/cancel.ts')).cancelCommand,
  },
  {
    usage: 'flows',
    summary: 'list the flows and the templates',
    examples: ['muster flows'],
    load: async () => (await import('./commands/flows.ts')).flowsCommand,
  },
  {
    usage: 'flow run <flow>',
    summary: 'start a flow or a template and follow it',
    options: [
      ['--input <json>', 'an object, a list or a text; @file reads a file, - the standard input'],
      ['--example', 'take the example of the template as the input'],
      ['--workers <number>', 'the most leaves under way at once'],
      TIMEOUT,
      DETACH,
    ],
    examples: [
      'muster flow run swarm_test --example',
      `muster flow run research --input '{"question": "Does tea keep longer than coffee?"}'`,
    ],
    load: async () => (await import('./commands/flow-run.ts')).flowRunCommand,
  },
  {
    usage: 'flow runs',
    summary: 'list the flow runs, the newest first',
    options: [
      ['--flow <name>', 'only those of one flow'],
      ['--status <status>', 'queued, running, completed, partial, failed, cancelled or timed_out'],
      LIMIT,
    ],
    examples: ['muster flow runs', 'muster flow runs --status failed'],
    load: async () => (await import('./commands/flow-runs.ts')).flowRunsCommand,
  },
  {
    usage: 'inbox',
    summary: 'show what waits for you: questions, suggestions, work',
    examples: ['muster inbox'],
    load: async () => (await import('./commands/inbox.ts')).inboxCommand,
  },
  {
    usage: 'approve <task...>',
    summary: 'approve suggestions and calls: by id, words of the title, or agent',
    examples: ['muster approve Triage', 'muster approve 78434b98 5bbad8ac'],
    load: async () => (await import('./commands/approve.ts')).approveCommand,
  },
  {
    usage: 'reject <task>',
    summary: 'reject a suggestion or a call',
    options: [['--reason <text>', 'why']],
    examples: ['muster reject Triage --reason "It is not urgent."'],
    load: async () => (await import('./commands/reject.ts')).rejectCommand,
  },
  {
    usage: 'answer <task> <text>',
    summary: 'answer a question, or report work as done',
    examples: [
      'muster answer Coordinator "Yes, go on."',
      'muster answer 5bbad8ac - < answer.txt',
      'muster answer 5bbad8ac again',
    ],
    load: async () => (await import('./commands/answer.ts')).answerCommand,
  },
  {
    usage: 'top-up <agent> <tokens>',
    summary: 'give an agent more tokens',
    examples: ['muster top-up Scout 10000'],
    load: async () => (await import('./commands/top-up.ts')).topUpCommand,
  },
  {
    usage: 'halt',
    summary: 'stop all runs of the project; nothing is lost',
    examples: ['muster halt'],
    load: async () => (await import('./commands/halt.ts')).haltCommand,
  },
  {
    usage: 'unhalt',
    summary: 'let the project continue',
    examples: ['muster unhalt'],
    load: async () => (await import('./commands/halt.ts')).unhaltCommand,
  },
  {
    usage: 'projects',
    summary: 'list the projects that the key can see',
    examples: ['muster projects'],
    load: async () => (await import('./commands/projects.ts')).projectsCommand,
  },
  {
    usage: 'api <method> <path> [body]',
    summary: 'ask any route; a path without a first / is below the project',
    examples: [
      'muster api GET schedule',
      'muster api POST agents/@Scout/stop',
      `muster api PATCH settings '{"stuck_retry_limit": 1}'`,
    ],
    load: async () => (await import('./commands/api.ts')).apiCommand,
  },
]
