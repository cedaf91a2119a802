// Topics, and files for other programs, are imported as text.
declare module '*.md' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.yml' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.yaml' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.service' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.conf' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*/Containerfile' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*/Caddyfile' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.bash' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.zsh' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.fish' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.cfg' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}

declare module '*.sh' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}
