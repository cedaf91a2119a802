// Topics, the files of the page, and files for other programs are imported as text.
declare module 'any-text' {
  const text: string
  // biome-ignore lint/style/noDefaultExport: a text import has only a default export
  export default text
}
declare module '*.md' {
  export { default } from 'any-text'
}
declare module '*.yml' {
  export { default } from 'any-text'
}
declare module '*.yaml' {
  export { default } from 'any-text'
}
declare module '*.service' {
  export { default } from 'any-text'
}
declare module '*.conf' {
  export { default } from 'any-text'
}
declare module '*/Containerfile' {
  export { default } from 'any-text'
}
declare module '*/Caddyfile' {
  export { default } from 'any-text'
}
declare module '*.bash' {
  export { default } from 'any-text'
}
declare module '*.zsh' {
  export { default } from 'any-text'
}
declare module '*.fish' {
  export { default } from 'any-text'
}
declare module '*.cfg' {
  export { default } from 'any-text'
}
declare module '*.sh' {
  export { default } from 'any-text'
}
declare module '*.css' {
  export { default } from 'any-text'
}
declare module '*.js' {
  export { default } from 'any-text'
}
declare module '*.svg' {
  export { default } from 'any-text'
}
declare module '*.woff2.txt' {
  export { default } from 'any-text'
}
