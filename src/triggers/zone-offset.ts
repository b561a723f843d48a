const formats = new Map<string, Intl.DateTimeFormat>()

/** The milliseconds by which local clocks are ahead of UTC at the instant. */
export function offsetAt(zone: string, instantMs: number): number {
  const text = formatOf(zone).format(instantMs)
  const [, sign, hours, minutes, seconds = 0] = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text) ?? []
  if (sign === undefined) return 0
  const ms = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000
  return sign === '-' ? -ms : ms
}

/** The first instant after `from` at which clocks are not `offset` ahead. At `until` clocks have another offset. */
export function findTurn(zone: string, fromMs: number, untilMs: number, offset: number): number {
  let before = fromMs
  let turned = untilMs
  while (turned - before > 1) {
    const middle = Math.floor((before + turned) / 2)
    if (offsetAt(zone, middle) === offset) before = middle
    else turned = middle
  }
  return turned
}

/** Making a format is a thousand times as slow as using one. There are too few zones to make this map large. */
function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
    formats.set(zone, format)
  }
  return format
}
