/**
 * Readline replaces only part of a word, which part depends on quotes and COMP_WORDBREAKS: both are handed over with
 * the line.
 */
export const bash = (name: string, id: string) => `# bash completion for ${name}; made by: ${name} completion bash
_${id}() {
  local answer kind line
  COMPREPLY=()
  answer=$(command ${name} _complete --shell bash -- "$COMP_WORDBREAKS" "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
  {
    IFS= read -r kind
    while IFS= read -r line; do COMPREPLY+=("$line"); done
  } <<<"$answer"
  case $kind in
    files) compopt -o bashdefault -o default 2>/dev/null ;;
    folders) compopt -o dirnames 2>/dev/null ;;
  esac
  if [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *[/=] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o nosort -F _${id} ${name} 2>/dev/null || complete -F _${id} ${name}
`;
