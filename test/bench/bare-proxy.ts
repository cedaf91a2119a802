// The least that a proxy can cost on this runtime: what comes goes on, what comes back goes out. It knows no callers and keeps no record.
// Prints its port. `bun bare-proxy.ts UPSTREAM_ORIGIN`
const [, , origin = ''] = process.argv
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  development: false,
  idleTimeout: 0,
  fetch: async ({ method, headers, body, url }) => {
    const answer = await fetch(origin + new URL(url).pathname, { method, headers, body })
    return new Response(answer.body, answer)
  },
})
console.log(server.port)

export {}
