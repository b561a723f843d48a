import { projectAnswer, readList } from '../answers.ts'
import type { Execute } from '../command.ts'
import { ageText } from '../durations.ts'
import { exitCodes } from '../exit-codes.ts'
import { printTable } from '../table.ts'
import { jsonText } from '../visible-text.ts'

const MOST = 2_000

export const projectsCommand: Execute = async ({ client, out, isJson, now }) => {
  const { items } = await readList(client, '/api/projects', projectAnswer, { most: MOST })
  if (isJson) out.print(jsonText({ items }))
  else {
    printTable(
      out,
      [
        { title: 'PROJECT', cell: ({ name }) => name, least: 12 },
        {
          title: 'STATUS',
          cell: ({ halted_at }) => (halted_at === null ? 'open' : { text: 'halted', style: 'red' }),
        },
        {
          title: 'AGE',
          cell: ({ created_at }) => ({ text: ageText(created_at, now()), whole: created_at }),
          side: 'right',
          leaveOut: 1,
        },
      ],
      items,
    )
  }
  return exitCodes.done
}
