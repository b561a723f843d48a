// Roll back and Delete each ask once, and say what happens.
import { Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { deleteVariant, rollBack, type VariantKey, versionDiffQuery } from '../../api/prompts.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { Diff } from '../../parts/diff.tsx'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import classes from './prompts.module.css'
import { useOpenVariant } from './use-open-variant.ts'

export function RollBackDialog(props: { variantKey: VariantKey; to: number; newest: number; onClose: () => void }) {
  const { variantKey, to, newest, onClose } = props
  const { write, ...state } = useWrite({ reads: [['prompt', variantKey.projectId]] })
  const apply = async (): Promise<void> => {
    const isDone = await write(
      () => rollBack(variantKey, to, newest),
      ({ version }) => `Version ${version} has the text of version ${to}.`,
    )
    if (isDone) onClose()
  }
  const diff = useQuery(versionDiffQuery(variantKey, newest, to))
  return (
    <FormDialog
      title={`Roll back ${variantKey.promptId}, ${variantKey.variantId}, to version ${to}`}
      action="Roll back"
      size="min(960px, 96vw)"
      write={state}
      onClose={onClose}
      onSubmit={() => void apply()}
    >
      <Text size="sm">
        Version {newest + 1} is made with the text of version {to}. All versions stay. Runs read the new text at once.
      </Text>
      {diff.isPending && <Loading />}
      {diff.isError && <Failure what="The difference could not be read." error={diff.error} />}
      {diff.data && <Diff parts={diff.data.parts} names={[`Version ${newest}`, `Version ${to}`]} isFolded />}
    </FormDialog>
  )
}

export function DeleteDialog(props: { variantKey: VariantKey; isRequired: boolean; onClose: () => void }) {
  const { variantKey, isRequired, onClose } = props
  const { projectId, promptId, variantId } = variantKey
  const client = useQueryClient()
  const open = useOpenVariant(projectId)
  const question = {
    title: `Delete the variant ${variantId} of ${promptId}`,
    text: (
      <>
        <p style={{ margin: 0 }}>Its versions stay, and a rollback brings it back.</p>
        {isRequired && (
          <p className={classes.note}>
            The supervisor needs this prompt: until it is back, runs of the variant {variantId} fail.
          </p>
        )}
      </>
    ),
    action: 'Delete',
    onYes: async () => {
      await deleteVariant(variantKey)
      // The page stays at the variant, because its versions can bring it back.
      await open(promptId, variantId)
      await client.invalidateQueries({ queryKey: ['prompt', projectId] })
      tell(`The variant ${variantId} of ${promptId} is deleted.`)
    },
  }
  return <Confirm question={question} onClose={onClose} />
}
