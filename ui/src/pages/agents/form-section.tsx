import { Stack, Title } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { ReactNode } from 'react'
import type { AgentDraft } from './agent-draft.ts'
import classes from './agents.module.css'

export type AgentForm = UseFormReturnType<AgentDraft>

export interface SectionProps {
  form: AgentForm
  projectId: string
}

export function FormSection({ title, children }: { title?: string; children: ReactNode }) {
  return (
    <section className={classes.section}>
      {title !== undefined && <Title order={2}>{title}</Title>}
      <Stack>{children}</Stack>
    </section>
  )
}
