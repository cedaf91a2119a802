// Whether the page is light or dark: as the system is, or as somebody chose it, which the browser keeps.

const key = 'latchkey appearance'
/** The choices, as CSS names them. @type {Readonly<Record<string, string>>} */
export const appearances = { dark: 'Dark', light: 'Light', system: 'As the system' }

/** @param {string} name one of the choices */
export function setAppearance(name) {
  localStorage.setItem(key, name)
  applyAppearance()
}

export function applyAppearance() {
  const kept = localStorage.getItem(key) ?? ''
  document.documentElement.style.colorScheme = kept === 'dark' || kept === 'light' ? kept : ''
}
