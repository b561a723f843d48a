// The same flows as graphs of LangGraph whose checkpoints go to PostgreSQL. LangGraph's durability has its default,
// with which a step need not wait until the step before it is written: it promises less than Muster does.
import { Annotation, END, Send, START, StateGraph } from '@langchain/langgraph'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import pg from 'pg'
import { fiveStepGraph } from '../kit/five-step-graph.ts'
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

const sequence = fiveStepGraph<Value>(nextValue, saver)

async function playSequences({ count, inFlight }: { count: number; inFlight: number }): Promise<{ seconds: number }> {
  const settings = Array.from({ length: count }, newThread)
  const seconds = await timeInFlight(count, inFlight, (index) => sequence.invoke({ value: FIRST }, settings[index]))
  await timeInFlight(count, Number(poolSize), async (index) => {
    const { values } = await sequence.getState(settings[index] ?? {})
    const { value } = values as { value: Value } // a graph keeps the values of its nodes
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
