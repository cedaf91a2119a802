// The page's files are imported as text.
declare module '*.css' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.js' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.svg' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}
