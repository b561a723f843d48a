import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { createFixtureServer } from './mcp-fixture.ts'

const description = process.argv.find((argument) => argument.startsWith('description='))?.slice('description='.length)
const server = createFixtureServer({
  crash: () => process.exit(3),
  ...(description === undefined ? {} : { description }),
})
await server.connect(new StdioServerTransport())
