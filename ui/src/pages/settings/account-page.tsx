// The account of the signed-in person, at an address that needs no project.
import { Stack, Title } from '@mantine/core'
import { PageHead } from '../../parts/page-head.tsx'
import { AccountPanel } from './account-panel.tsx'
import classes from './settings.module.css'

export function AccountPage() {
  return (
    <>
      <PageHead name="Your account" title={<Title order={1}>Your account</Title>} />
      <Stack className={classes.body ?? ''} gap="xl">
        <AccountPanel />
      </Stack>
    </>
  )
}
