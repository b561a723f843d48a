import { Annotation, type BaseCheckpointSaver, END, START, StateGraph } from '@langchain/langgraph'

/** Five nodes of LangGraph in sequence, each of which advances the value by one step. */
export function fiveStepGraph<Value>(nextValue: (value: Value) => Value, checkpointer: BaseCheckpointSaver) {
  const State = Annotation.Root({ value: Annotation<Value> })
  const next = async ({ value }: typeof State.State) => ({ value: nextValue(value) })
  return new StateGraph(State)
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
    .compile({ checkpointer })
}
