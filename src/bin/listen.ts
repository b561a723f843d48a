import type { App } from '../api/http/app.ts'
import { type Config, ConfigError } from './config.ts'

export async function listen(app: App, config: Config): Promise<void> {
  try {
    await app.listen({ port: config.port, host: config.host })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'EADDRINUSE')
      throw new ConfigError(`PORT ${config.port} is in use. Choose another: PORT=8081 npm start`)
    if (code === 'EACCES')
      throw new ConfigError(`PORT ${config.port} may not be opened by this user. Choose one above 1023.`)
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN')
      throw new ConfigError(`HOST ${config.host} is no address of this machine.`)
    throw error
  }
}
