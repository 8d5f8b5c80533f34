# beforehand: Esc Esc at an empty prompt opens the picker. Loaded by
#   eval "$(beforehand init zsh)"

if [[ -o interactive ]]; then

typeset -gA _beforehand_before

_beforehand_rewind() {
  # More bytes right behind: Alt with an arrow key, which sends Esc twice. It is the arrow key.
  if (( PENDING )); then
    zle -U $'\e'
    return 0
  fi
  if [[ -n $BUFFER || -n $PREBUFFER ]]; then
    local before=${_beforehand_before[$KEYMAP]:-${_beforehand_before[main]}}
    if [[ -n $before ]]; then
      zle "$before"
    elif [[ $KEYMAP == (main|viins) && ${_beforehand_before[mode]} == vi ]]; then
      zle vi-cmd-mode
    fi
    return 0
  fi
  # It draws on the terminal's other screen; what it has done is printed above a new prompt.
  local said
  said=$(command beforehand rewind --at-prompt </dev/tty 2>&1)
  if [[ -n $said ]]; then
    zle -I
    print -r -- "$said"
  fi
  return 0
}
zle -N _beforehand_rewind

() {
  local keymap bound
  [[ $(bindkey -lL main 2>/dev/null) == *viins* ]] && _beforehand_before[mode]=vi
  for keymap in emacs viins vicmd; do
    bound=(${(z)$(bindkey -M $keymap '\e\e' 2>/dev/null)})
    if [[ ${bound[2]} != (undefined-key|_beforehand_rewind|) ]]; then
      _beforehand_before[$keymap]=${bound[2]}
    fi
    bindkey -M $keymap '\e\e' _beforehand_rewind 2>/dev/null
  done
}

fi
