import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countCharacters } from '../../test/kit/count-characters.ts'
import { type Assignment, CLOSING, offlineProse, offlineSummary } from './offline-prose.ts'

const given = (task: string, more: Partial<Assignment> = {}): Assignment => ({
  task,
  instructions: '',
  objectId: null,
  results: [],
  ...more,
})
const gave = { name: 'search', text: `Rain falls. ${CLOSING}`, isError: false }
const failed = { name: 'http_fetch', text: 'no luck', isError: true }

const stuck = (agent: string, task: string, error: string): string =>
  `Task: Agent ${agent} is stuck\n\n${agent} is blocked on the task "${task}".\n\nThe last error: ${error}\n\nComplete this task with advice as the result.`

const cases: [what: string, assignment: Assignment, answer: string][] = [
  [
    'an instruction',
    given('Please write two lines about rain.'),
    'I was asked to write two lines about rain. I kept to the points it names: lines and rain.',
  ],
  [
    'an instruction behind another sentence',
    given('You lead a team. Compare the offers!'),
    'I was asked to compare the offers. I kept to the points it names: offers.',
  ],
  [
    'an instruction with results of tools',
    given('Search for rain', { results: [gave, failed] }),
    'I was asked to search for rain. search gave "Rain falls". http_fetch failed with "no luck".',
  ],
  [
    'an instruction whose tool gave a list',
    given('Search for rain', {
      results: [{ ...gave, text: '{"items":[{"key":"k","properties":{"title":"Wet"}},{"name":"Dry"},{"key":"z"}]}' }],
    }),
    'I was asked to search for rain. search gave 3 items ("Wet", "Dry" and "z").',
  ],
  [
    'an instruction whose tools gave an empty list, and lists without names',
    given('Search for rain', {
      results: ['[]', '[1]', '{"a":[{"b":1}]}', '{"a":1}', '[cut'].map((text) => ({ ...gave, text })),
    }),
    'I was asked to search for rain. search gave 0 items. search gave "[1]". search gave "{"a":[{"b":1}]}". search gave "{"a":1}". search gave "[cut".',
  ],
  [
    'an instruction with input',
    given('Test it: is it right?\n\nSay PASS or FAIL.\n\n<input>\nyear % 4\n</input>'),
    'I was asked to test it: is it right. I went through the input, which begins with "year % 4".',
  ],
  [
    'a question',
    given('We have a shop. What does rain do to iron?'),
    'You want to know: "What does rain do to iron?" It turns on shop, rain and iron, and your words are all I have to go by.',
  ],
  [
    'a question with the result of a tool',
    given('Does rain fall?', { results: [gave] }),
    'You want to know: "Does rain fall?" search gave "Rain falls".',
  ],
  [
    'a task',
    given('Task: Release notes\n\nCollect all changes. Keep it short.'),
    'The task "Release notes" is done. It called for this: collect all changes.',
  ],
  ['a task without a description', given('Task: Rain'), 'The task "Rain" is done. It is about Rain.'],
  [
    'a task that builds on others and whose tool failed',
    given(
      'Task: Notes\n\nSort it.\n\nResults that this task builds on:\n- Collect (completed): x\n- Look up (failed): no result',
      { results: [failed] },
    ),
    'I worked on the task "Notes", and not all went well. I built on "Collect" and "Look up". http_fetch failed with "no luck".',
  ],
  [
    'a part of a plan',
    given('Task: Draft the note\n\nDo this part of a larger task: draft the note to customers'),
    'The task "Draft the note" is done. It is one part of a larger task, and I kept to its points: draft, note and customers.',
  ],
  [
    'a task that says what is the matter',
    given('Task: Agent Eve is bored\n\nEve had no task for 5 minutes. Check how work is spread.'),
    'The task "Agent Eve is bored" is done. It begins with this: Eve had no task for 5 minutes.',
  ],
  [
    'a task that was stuck',
    given(
      'Task: Count\n\nCount it.\n\nYou were stuck on this task and asked for help. This was answered:\n- Ada: It is open now.\n- Bob: Go on.\n\nThe last attempt failed: no',
    ),
    'The task "Count" is done. I went by the answer of Ada and Bob. It called for this: count it.',
  ],
  [
    'a stuck subordinate',
    given(stuck('Otto', 'Count the orders', 'The archive is locked.')),
    'I looked at what keeps Otto from the task "Count the orders". The error was "The archive is locked". Find the cause of the error, and go another way.',
  ],
  [
    'a stuck subordinate who could be helped',
    given(stuck('Otto', 'Count the orders', 'The archive is locked.'), { results: [{ ...gave, name: 'unlock' }] }),
    'I looked at what keeps Otto from the task "Count the orders". unlock gave "Rain falls". The way should be free now: try it again.',
  ],
  [
    'a message to an agent whose step has instructions',
    given('Rain is wet.', { instructions: 'You edit texts.\n\nCheck the facts of the text.' }),
    'I have read your message, "Rain is wet". I applied my instructions to it: "Check the facts of the text".',
  ],
  [
    'a greeting',
    given('Good morning'),
    'I have read your message, "Good morning". It calls for nothing in particular.',
  ],
  [
    'an event of the graph',
    given('Triage it.', { objectId: 'o-1', results: [{ ...gave, text: 'ok' }] }),
    'The object o-1 has changed, and I followed my instructions for it. search gave "ok".',
  ],
  ['nothing', given(' \n'), 'There was no message to work on. Nothing was done.'],
]
for (const [what, assignment, answer] of cases) {
  test(`${what} gets an answer in its own words`, () => {
    assert.equal(offlineProse(assignment), `${answer} ${CLOSING}`)
  })
}

test('a summary tells the results and says that something is left', () => {
  assert.equal(
    offlineSummary(given('Write about rain.', { results: [gave] })),
    `Summary so far: I was asked to write about rain. search gave "Rain falls". The rest is left to do. ${CLOSING}`,
  )
  assert.match(offlineSummary(given('Write about rain.')), /No tool was called\. The rest is left to do/)
})

test('the answer to a long message with long results is short, and counts the results that it leaves out', () => {
  const long = 'Write about the rain in Spain '.repeat(100)
  for (const task of [long, `Task: ${long}\n\n${long}`, `${long}?`, `So be it, ${long}`]) {
    assert.ok(offlineProse(given(task, { instructions: long })).length < 600)
    assert.ok(offlineProse(given(task, { results: [gave, { ...gave, text: long }] })).length < 600)
  }
  assert.match(offlineProse(given(long, { results: Array(15).fill(gave) })), /There are 5 more results\./)
})

test('no half of a character is left where a text is cut', () => {
  for (const pad of ['', 'x']) {
    const text = `${pad}${'🌧'.repeat(6_000)}`
    for (const task of [text, `Write ${text}`, `Task: ${text}\n\n${text}`]) {
      const answer = offlineProse(given(task, { results: [{ ...gave, text }] }))
      assert.ok(answer.isWellFormed(), answer)
    }
  }
})

const hostile: Record<string, string> = {
  'one word': 'a'.repeat(1_000_000),
  'white space': `Task: ${' \n'.repeat(500_000)}`,
  stops: '. '.repeat(500_000),
  'results of other tasks': `Task: a\nResults that this task builds on:\n${'- ( (a'.repeat(166_000)}`,
  'answers to calls for help': `Task: a\n\nYou were stuck on this task and asked for help. This was answered:\n${'- a:'.repeat(250_000)}`,
  'calls for help': `Task: Agent a is stuck\n\n${'a is blocked on the task "'.repeat(40_000)}`,
  lists: `[${'{"name":"a"},'.repeat(70_000)}]`,
  'inputs in inputs': '\n<input>\n'.repeat(110_000),
}
for (const [what, text] of Object.entries(hostile)) {
  test(`a megabyte is answered from its beginning: ${what}`, () => {
    const assignment = given(text, { instructions: text, results: [{ ...gave, text }] })
    const work = countCharacters(() => offlineProse(assignment))
    assert.ok(work <= 2_500_000, `${work} characters`)
    const took = cpuMs(() => offlineProse(assignment))
    assert.ok(took < 100, `it took ${took} ms`)
  })
}

/** The CPU time of this thread, without the time that it waits on a busy machine. */
function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
