// The fields of a leaf: an agent with its input, or a function with its arguments.
import { Autocomplete, Button, SegmentedControl, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { newestAgentsQuery } from '../../api/queries.ts'
import { functionCalled, knownFunctions } from './functions.ts'
import { ON_PREVIOUS } from './patterns.ts'
import { problemsAt } from './problems.ts'
import { idsIn, isNode, type TreeNode } from './tree.ts'
import type { Editor } from './use-editor.ts'
import { ValueField } from './value-field.tsx'

const NO_VALUE = 'Empty: the result that came before.'

export function LeafFields({ editor, node }: { editor: Editor; node: TreeNode }) {
  const isAgent = 'agent' in node
  const change = (kind: string): void => {
    const { agent, input, function: name, args, ...shared } = node
    if ((kind === 'agent') === isAgent) return
    editor.setNode(
      kind === 'agent'
        ? { ...shared, agent: '', ...(args === undefined ? {} : { input: promptOf(args) }) }
        : { ...shared, function: 'muster.ask', args: questionFrom(input) },
    )
  }
  return (
    <Stack gap="sm">
      <SegmentedControl
        size="xs"
        aria-label="The leaf is"
        data={[
          { value: 'agent', label: 'Agent' },
          { value: 'function', label: 'Function' },
        ]}
        value={isAgent ? 'agent' : 'function'}
        onChange={change}
        disabled={editor.isLocked}
      />
      {isAgent ? <AgentLeafFields editor={editor} node={node} /> : <FunctionLeafFields editor={editor} node={node} />}
    </Stack>
  )
}

/** The input of an agent becomes a question to the model. */
function questionFrom(input: unknown): object {
  if (input === undefined) return { prompt: ON_PREVIOUS }
  return typeof input === 'string' ? { prompt: input } : { prompt: 'Work on this.', input }
}

/** A question to the model becomes the input of an agent, and nothing that was written is lost. */
function promptOf(args: unknown): unknown {
  return isNode(args) && Object.keys(args).length === 1 && args.prompt !== undefined ? args.prompt : args
}

/** The names of the project's agents. A name that is typed need not be among them. */
export function useAgentNames(projectId: string): string[] {
  const agents = useQuery(newestAgentsQuery(projectId))
  return [...new Set((agents.data?.items ?? []).map(({ name }) => name))]
}

function AgentLeafFields({ editor, node }: { editor: Editor; node: TreeNode }) {
  const { projectId, selected, problems, isLocked } = editor
  const agents = useQuery(newestAgentsQuery(projectId)).data?.items ?? []
  const names = useAgentNames(projectId)
  const name = typeof node.agent === 'string' ? node.agent : ''
  const agent = agents.find((each) => each.name === name || each.id === name)
  return (
    <>
      <Autocomplete
        label="Agent"
        description="A run of this agent. Its name, or its id."
        data={names}
        limit={50}
        value={name}
        error={problemsAt(problems, selected, 'agent')}
        readOnly={isLocked}
        onChange={(value) => editor.setField('agent', value)}
      />
      {agent && (
        <Text size="xs" className="dim">
          <Link to="/projects/$projectId/agents/$agentId" params={{ projectId, agentId: agent.id }}>
            Open {agent.name}
          </Link>
        </Text>
      )}
      <ValueField
        key={`${selected}.input`}
        label="Input"
        hint={NO_VALUE}
        value={node.input}
        error={problemsAt(problems, selected, 'input')}
        isLocked={isLocked}
        ids={idsIn(editor.root)}
        onChange={(value) => editor.setField('input', value)}
      />
    </>
  )
}

export function FunctionName(props: {
  label: string
  value: unknown
  error: string | null
  isLocked: boolean
  onChange: (value: string) => void
}) {
  const known = functionCalled(props.value)
  return (
    <>
      <Autocomplete
        label={props.label}
        description="One that comes with Muster, or one of your app module."
        data={knownFunctions.map(({ name }) => name)}
        value={typeof props.value === 'string' ? props.value : ''}
        error={props.error}
        readOnly={props.isLocked}
        onChange={props.onChange}
        renderOption={({ option }) => (
          <div>
            <span className="mono">{option.value}</span>
            <Text size="xs" className="dim">
              {functionCalled(option.value)?.description}
            </Text>
          </div>
        )}
      />
      {known && (
        <Text size="xs" className="dim">
          {known.description}
        </Text>
      )}
    </>
  )
}

function FunctionLeafFields({ editor, node }: { editor: Editor; node: TreeNode }) {
  const { selected, problems, marks, isLocked } = editor
  const ids = idsIn(editor.root)
  const { args } = node
  const names = functionCalled(node.function)?.args ?? []
  const given = isNode(args) ? args : {}
  const isPlain =
    names.length > 0 &&
    (args === undefined || (isNode(args) && Object.keys(args).every((name) => names.includes(name))))
  const errorOf = (name: string, index: number): string | null => {
    const own = marks.filter(({ path }) => {
      const argument = /^\.args\.([^.[]+)/.exec(path.slice(selected.length))?.[1] ?? ''
      // A problem of no field that is shown stands at the first one.
      return names.includes(argument) ? argument === name : index === 0
    })
    return problemsAt(own, selected, 'args')
  }
  return (
    <>
      <FunctionName
        label="Function"
        value={node.function}
        error={problemsAt(problems, selected, 'function')}
        isLocked={isLocked}
        onChange={(value) => editor.setField('function', value)}
      />
      {isPlain ? (
        names.map((name, index) => (
          <ValueField
            key={`${selected}.${name}`}
            label={name === 'prompt' ? 'Prompt' : `Argument ${name}`}
            value={given[name]}
            error={errorOf(name, index)}
            isLocked={isLocked}
            ids={ids}
            onChange={(value) => editor.setField(`args.${name}`, value)}
          />
        ))
      ) : (
        <ValueField
          key={`${selected}.args`}
          label="Arguments"
          hint={NO_VALUE}
          value={args}
          error={problemsAt(marks, selected, 'args')}
          isLocked={isLocked}
          ids={ids}
          onChange={(value) => editor.setField('args', value)}
        />
      )}
      {isPlain && args !== undefined && !isLocked && (
        <Button
          size="compact-xs"
          variant="subtle"
          style={{ alignSelf: 'flex-start' }}
          onClick={() => editor.setField('args', undefined)}
        >
          Leave all arguments out
        </Button>
      )}
    </>
  )
}
