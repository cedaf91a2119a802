// Loaded before every test. While `expect().rejects` and `.resolves` wait in a process that serves, Bun runs no immediates until something else
// wakes its event loop, which can take a minute: work in slices stands still.
setInterval(() => {}, 5).unref()
