# bash completion for latchkey: source this file, or put it in /etc/bash_completion.d
_latchkey() {
  local line="${COMP_LINE:0:COMP_POINT}" kind value rest cut
  local -a words
  read -ra words <<<"$line"
  # After a space, a new word begins.
  case $line in *[[:space:]]) words+=('') ;; esac
  local current="${words[${#words[@]} - 1]}"
  # bash replaces only what follows the last of these characters.
  cut="${current%"${current##*[:=@]}"}"
  COMPREPLY=()
  {
    read -r kind
    if [ "$kind" = files ]; then
      compopt -o default 2>/dev/null
      return
    fi
    while IFS=$'\t' read -r value rest; do
      value="${value#"$cut"}"
      COMPREPLY+=("$(printf %q "$value")")
    done
  } < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _latchkey latchkey
