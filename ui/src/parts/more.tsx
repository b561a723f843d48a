import { Button, Center } from '@mantine/core'

interface Props {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }
}

/** The button that reads the next page of a list. */
export function More({ list }: Props) {
  if (!list.hasNextPage) return null
  return (
    <Center py="sm">
      <Button
        size="compact-sm"
        variant="default"
        loading={list.isFetchingNextPage}
        onClick={() => void list.fetchNextPage()}
      >
        More
      </Button>
    </Center>
  )
}
