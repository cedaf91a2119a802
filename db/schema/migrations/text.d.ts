declare module '*.sql' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}
