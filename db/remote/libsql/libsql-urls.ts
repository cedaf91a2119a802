// The URLs of libSQL servers.
import type { ServerUrls } from '../server-client.ts'

export const libsqlUrls: ServerUrls = {
  hasCopies: false,
  isUrl: (text) => /^(libsql|https?|wss?):/.test(text),
  urlProblem: (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || /^wss?:$/.test(url.protocol) || url.hostname === '')
      return 'use the https:// or http:// URL of a libSQL server'
    if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
      return 'use a URL without credentials and query; set LATCHKEY_DATABASE_TOKEN or its file'
    return undefined
  },
}
