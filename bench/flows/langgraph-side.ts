// The same flows as graphs of LangGraph whose checkpoints go to PostgreSQL. Its durability is left at its default, in
// which a step need not wait until the one before it is written: it promises less here than Muster does.
import { Annotation, END, Send, START, StateGraph } from '@langchain/langgraph'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import pg from 'pg'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import { FIRST, nextValue, STEPS, square, sumOfSquares, type Value } from './leaf-work.ts'

export type GraphQuestion = { do: 'sequences'; count: number; inFlight: number } | { do: 'fan_out'; branches: number }

const [url = '', poolSize = ''] = process.argv.slice(2)
const saver = new PostgresSaver(new pg.Pool({ connectionString: url, max: Number(poolSize) }))
await saver.setup()
let threads = 0

answerQuestions<GraphQuestion>((question) =>
  question.do === 'sequences' ? playSequences(question) : playFanOut(question.branches),
)

const newThread = () => ({ configurable: { thread_id: `thread ${threads++}` } })

const SequenceState = Annotation.Root({ value: Annotation<Value> })
const next = async ({ value }: typeof SequenceState.State) => ({ value: nextValue(value) })
const sequence = new StateGraph(SequenceState)
  .addNode('step_1', next)
  .addNode('step_2', next)
  .addNode('step_3', next)
  .addNode('step_4', next)
  .addNode('step_5', next)
  .addEdge(START, 'step_1')
  .addEdge('step_1', 'step_2')
  .addEdge('step_2', 'step_3')
  .addEdge('step_3', 'step_4')
  .addEdge('step_4', 'step_5')
  .addEdge('step_5', END)
  .compile({ checkpointer: saver })

async function playSequences({ count, inFlight }: { count: number; inFlight: number }): Promise<{ seconds: number }> {
  const settings = Array.from({ length: count }, newThread)
  const seconds = await timeInFlight(count, inFlight, (index) => sequence.invoke({ value: FIRST }, settings[index]))
  await timeInFlight(count, Number(poolSize), async (index) => {
    const { values } = await sequence.getState(settings[index] ?? {})
    const { value } = values as typeof SequenceState.State // a graph keeps what its nodes gave
    if (value.step !== STEPS) throw new Error(`a thread kept ${JSON.stringify(value)}`)
  })
  return { seconds }
}

const FanOutState = Annotation.Root({
  branches: Annotation<number>,
  squares: Annotation<number[]>({ reducer: (all, some) => all.concat(some), default: () => [] }),
  sum: Annotation<number>,
})
const fanOut = new StateGraph(FanOutState)
  .addNode('work', async ({ item }: { item: number }) => ({ squares: [square(item)] }))
  .addNode('join', async ({ squares }) => ({ sum: squares.reduce((all, each) => all + each, 0) }))
  .addConditionalEdges(START, ({ branches }) =>
    Array.from({ length: branches }, (_, item) => new Send('work', { item })),
  )
  .addEdge('work', 'join')
  .addEdge('join', END)
  .compile({ checkpointer: saver })

async function playFanOut(branches: number): Promise<{ seconds: number }> {
  const settings = newThread()
  const began = performance.now()
  await fanOut.invoke({ branches }, settings)
  const seconds = (performance.now() - began) / 1_000
  const { values } = await fanOut.getState(settings)
  const { sum } = values as typeof FanOutState.State // as above
  if (sum !== sumOfSquares(branches)) throw new Error(`a thread kept ${sum}`)
  return { seconds }
}
