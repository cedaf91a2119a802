// The least that a binary which serves HTTP can be, as a measure for ours. The port is its argument.
Bun.serve({ hostname: '127.0.0.1', port: Number(process.argv[2]), fetch: () => new Response('ok') })
