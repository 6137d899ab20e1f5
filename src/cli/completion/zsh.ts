/** zsh quotes what it inserts. Values that do not begin with what was typed are meant to replace it: -U. */
export const zsh = (name: string, id: string) => String.raw`#compdef ${name}
# zsh completion for ${name}; made by: ${name} completion zsh
_${id}() {
  local kind line value typed
  local -a answer finished open how
  case $compstate[quote] in
    \') typed=$PREFIX ;;
    \") typed=${"$"}{(Q):-\"$PREFIX\"} ;;
    *) typed=${"$"}{(Q)PREFIX} ;;
  esac
  answer=("${"$"}{(@f)$(command ${name} _complete --shell zsh -- "${"$"}{(@Q)words[2,CURRENT-1]}" "$typed" 2>/dev/null </dev/null)}")
  kind=$answer[1]
  if [[ $kind == *= ]]; then
    compset -P 1 '*='
    typed=${"$"}{typed#*=}
  fi
  case $kind in
    files*) _files ;;
    folders*) _files -/ ;;
    values*)
      for line in "${"$"}{(@)answer[2,-1]}"; do
        value=${"$"}{line%%$'\t'*}
        [[ $value == "$typed"* ]] || how=(-U)
        # _describe takes what stands behind the first colon for the description.
        line=${"$"}{${"$"}{value//\\/\\\\}//:/\\:}${"$"}{line#$value}
        if [[ $value == *[/=] ]]; then open+=("${"$"}{line/$'\t'/:}"); else finished+=("${"$"}{line/$'\t'/:}"); fi
      done
      _describe -V -t values ${name} finished $how -- open -S "" $how
      ;;
  esac
}
if [[ $funcstack[1] == _${id} ]]; then
  _${id} "$@"
else
  if (( ! $+functions[compdef] )); then autoload -Uz compinit && compinit; fi
  compdef _${id} ${name}
fi
`;
