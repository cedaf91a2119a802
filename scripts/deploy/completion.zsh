#compdef latchkey
# zsh completion for latchkey: put this file in a folder of $fpath as _latchkey, or source it after compinit.
_latchkey() {
  local -a lines described
  local line
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "$lines[1]" == files ]]; then
    _files
    return
  fi
  for line in "${(@)lines[2,-1]}"; do
    [[ -n "$line" ]] && described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe latchkey described
}
if [[ "$funcstack[1]" == _latchkey ]]; then
  _latchkey "$@"
else
  compdef _latchkey latchkey
fi
