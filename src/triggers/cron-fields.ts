// The grammar of a cron schedule: five fields of digits and `* , - /`. A slip is refused with a reason.

interface CronField {
  name: string
  least: number
  most: number
}

const FIELDS: readonly CronField[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12 },
  { name: 'day of week', least: 0, most: 7 },
]

export const cronFields = (cron: string): string[] => cron.split(/[ \t\r\n]+/).filter((field) => field !== '')

/** The first mistake in the schedule as a sentence, or null. */
export function cronProblem(cron: string): string | null {
  const fields = cronFields(cron)
  if (fields.length !== FIELDS.length || !fields.every((field) => /^[\d*,/-]+$/.test(field))) {
    return 'cron_schedule must have five fields of digits and "* , - /", such as "0 9 * * 1-5".'
  }
  for (const [index, field] of FIELDS.entries()) {
    for (const part of (fields[index] ?? '').split(',')) {
      const problem = partProblem(part, field)
      if (problem !== null) return `cron_schedule: the ${field.name} ${problem}.`
    }
  }
  return null
}

function partProblem(part: string, { least, most }: CronField): string | null {
  if (part === '') return 'has an empty part between commas'
  const [, values = '', step] = /^([^/]*)(?:\/(.*))?$/.exec(part) ?? []
  if (step !== undefined) {
    if (!/^\d+$/.test(step)) return `has "${part}", where one number must follow the "/"`
    if (values !== '*' && !values.includes('-'))
      return `has "${part}": a step follows "*" or a range, as in */5 or 10-30/5`
    if (Number(step) < 1 || Number(step) > most) return `has a step of ${step}, which must be between 1 and ${most}`
  }
  if (values === '*') return null
  const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(values) ?? []
  if (from === undefined) return `has "${part}", which is no number, no range and no "*"`
  for (const value of [from, to ?? from]) {
    if (Number(value) < least || Number(value) > most) return `is ${value}, which must be between ${least} and ${most}`
  }
  if (Number(to ?? from) < Number(from)) return `has the range ${values}, which runs backwards`
  return null
}
