// Makes an agent, or changes one: a form with every field, and the same definition as JSON.

import {
  Alert,
  Button,
  createTheme,
  Group,
  MantineThemeProvider,
  SegmentedControl,
  Stack,
  Switch,
  Text,
  Textarea,
} from '@mantine/core'
import { useForm } from '@mantine/form'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useEffect, useState } from 'react'
import type { Agent, AgentDefinition } from '../../../../src/kernel/agent.ts'
import { agentPath } from '../../api/agents.ts'
import { patch, post } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { LeaveGuard } from '../../parts/leave-guard.tsx'
import { type AgentDraft, changesIn, definitionFrom, definitionOf, draftOf, parseDefinition } from './agent-draft.ts'
import { problemsIn } from './agent-problems.ts'
import classes from './agents.module.css'
import { Basics, ModelFields } from './form-basics.tsx'
import { Place, Rights } from './form-rights.tsx'
import type { AgentForm as Form } from './form-section.tsx'
import { TriggerFields } from './form-trigger.tsx'
import { Limits, Work } from './form-work.tsx'

interface Props {
  projectId: string
  /** The definition that the form begins with. */
  initial: AgentDefinition
  /** Null for a new agent. */
  agent: Agent | null
  /** The field that the reader came to change. */
  field?: string | undefined
}

export function AgentForm({ projectId, initial, agent, field }: Props) {
  useEffect(() => focusOn(field), [field])
  const form = useForm<AgentDraft>({ initialValues: draftOf(initial) })
  /** Null: the fields are shown. */
  const [json, setJson] = useState<string | null>(null)
  const { save, isBusy, problems, setProblems } = useSave({ projectId, agent, form })
  const navigate = useNavigate()
  const isOfApp = agent?.source === 'app'
  const isJsonChanged = json !== null && json !== jsonOf(form.values)

  const withParsed = (text: string, then: (definition: AgentDefinition) => void): void => {
    const parsed = parseDefinition(text)
    if ('problems' in parsed) setProblems(parsed.problems)
    else then(parsed.definition)
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (json === null) save(definitionFrom(form.values), { isForm: true })
    else withParsed(json, (definition) => save(definition, { isForm: false }))
  }
  const show = (view: string): void => {
    setProblems([])
    form.clearErrors()
    if (view === 'json') setJson(jsonOf(form.values))
    else
      withParsed(json ?? '', (definition) => {
        form.setValues(draftOf(definition))
        setJson(null)
      })
  }
  const leave = (): void =>
    void navigate(
      agent === null
        ? { to: '/projects/$projectId/agents', params: { projectId }, ignoreBlocker: true }
        : { to: '/projects/$projectId/agents/$agentId', params: { projectId, agentId: agent.id }, ignoreBlocker: true },
    )
  return (
    <form className={classes.form} onSubmit={submit} noValidate>
      <LeaveGuard of="this agent" isDirty={form.isDirty() || isJsonChanged} />
      <Stack mb="md">
        <Group justify="space-between">
          <SegmentedControl
            aria-label="View"
            size="xs"
            data={[
              { value: 'form', label: 'Form' },
              { value: 'json', label: 'JSON' },
            ]}
            value={json === null ? 'form' : 'json'}
            onChange={show}
          />
          {json === null && (
            <Switch size="sm" label="Enabled" {...form.getInputProps('enabled', { type: 'checkbox' })} />
          )}
        </Group>
        {isOfApp && (
          <Alert color="blue">
            This agent follows the code of the app module. Change the code and start Muster again; only Enabled is
            changed here.
          </Alert>
        )}
        <Refusal problems={problems} fields={Object.keys(form.errors).length} />
      </Stack>
      {json === null ? (
        <fieldset disabled={isOfApp} style={{ border: 0, margin: 0, padding: 0, minWidth: 0 }}>
          <Fields form={form} projectId={projectId} agentId={agent?.id ?? null} />
        </fieldset>
      ) : (
        <Textarea
          label="Definition"
          description="Fields that are left out have their defaults."
          classNames={{ input: 'mono' }}
          autosize
          minRows={16}
          spellCheck={false}
          readOnly={isOfApp}
          value={json}
          onChange={(event) => setJson(event.currentTarget.value)}
        />
      )}
      <div className={classes.foot}>
        <Button size="xs" variant="default" onClick={leave}>
          Cancel
        </Button>
        <Button size="xs" type="submit" loading={isBusy}>
          Save
        </Button>
      </div>
    </form>
  )
}

const jsonOf = (draft: AgentDraft): string => JSON.stringify(definitionFrom(draft), null, 2)

/** An open list stays clear of the buttons at the bottom of the window, and below them where it cannot. */
const clearOfButtons = createTheme({
  components: { Combobox: { defaultProps: { zIndex: 1, middlewares: { flip: { padding: 56 }, shift: true } } } },
})

function Fields({ form, projectId, agentId }: { form: Form; projectId: string; agentId: string | null }) {
  const props = { form, projectId }
  return (
    <MantineThemeProvider theme={clearOfButtons} inherit>
      <Basics {...props} />
      <ModelFields {...props} />
      <Work {...props} />
      <TriggerFields {...props} />
      <Limits {...props} />
      <Rights {...props} />
      <Place {...props} agentId={agentId} />
    </MantineThemeProvider>
  )
}

function Refusal({ problems, fields }: { problems: readonly string[]; fields: number }) {
  if (problems.length === 0 && fields === 0) return null
  return (
    <Alert color="red" role="alert" title="The agent is not saved.">
      {fields > 0 && (
        <Text size="sm">{fields === 1 ? 'A field needs a change.' : `${fields} fields need a change.`}</Text>
      )}
      {problems.map((problem) => (
        <Text key={problem} size="sm" style={{ overflowWrap: 'anywhere' }}>
          {problem}
        </Text>
      ))}
    </Alert>
  )
}

/** The fields that the form shows only for some values. */
function isShown({ isFromLibrary, flow_type, trigger_type, capabilities, steps }: AgentDraft, path: string): boolean {
  const [first = '', index] = path.split('.')
  switch (first) {
    case 'prompt':
      return !isFromLibrary
    case 'prompt_id':
      return isFromLibrary
    case 'steps':
      return flow_type === 'sequential' && (index === undefined || Number(index) < steps.length)
    case 'max_iterations':
      return flow_type === 'loop'
    case 'flow':
      return flow_type === 'flow'
    case 'cron_schedule':
    case 'timezone':
    case 'catch_up':
      return trigger_type === 'schedule'
    case 'reaction_config':
      return trigger_type === 'reaction'
    case 'capabilities':
      return path !== 'capabilities.allowedObjectTypes' || !capabilities.isForAllTypes
    default:
      return true
  }
}

function useSave({ projectId, agent, form }: { projectId: string; agent: Agent | null; form: Form }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [isBusy, setIsBusy] = useState(false)
  const [problems, setProblems] = useState<string[]>([])

  const send = (definition: AgentDefinition): Promise<Agent> =>
    agent === null
      ? post<Agent>(projectPath(projectId, '/agents'), definition)
      : patch<Agent>(agentPath(projectId, agent.id), changesIn(definition, definitionOf(agent)))

  const save = async (definition: AgentDefinition, { isForm }: { isForm: boolean }): Promise<void> => {
    setIsBusy(true)
    setProblems([])
    form.clearErrors()
    try {
      const saved = await send(definition)
      notifications.show({ message: `${saved.name} is ${agent === null ? 'created' : 'saved'}.` })
      client.setQueryData(['agent', projectId, saved.id], saved)
      void client.invalidateQueries({ queryKey: ['agent', projectId] })
      await navigate({
        to: '/projects/$projectId/agents/$agentId',
        params: { projectId, agentId: saved.id },
        ignoreBlocker: true,
      })
    } catch (error) {
      const found = problemsIn(error, (path) => isForm && isShown(form.values, path))
      form.setErrors(found.fields)
      setProblems(found.others)
      focusOn(Object.keys(found.fields)[0])
    } finally {
      setIsBusy(false)
    }
  }
  return {
    save: (definition: AgentDefinition, view: { isForm: boolean }) => void save(definition, view),
    isBusy,
    problems,
    setProblems,
  }
}

/** Leads to a field that needs a change. */
function focusOn(path: string | undefined): void {
  if (path === undefined) return
  requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-path="${CSS.escape(path)}"]`)?.focus())
}
