# beforehand: Esc Esc at an empty prompt opens the picker. Loaded by
#   eval "$(beforehand init bash)"

if [[ $- == *i* && ${BASH_VERSINFO[0]} -ge 4 ]]; then

# Esc Esc stands for two key sequences that are never typed. The first runs this, which decides what the second does.
_beforehand_rewind() {
  local keymap=$1 then='""' said
  if [[ -n $READLINE_LINE ]]; then
    case $keymap in
      emacs) then=complete ;;
      vi-insert) then=vi-movement-mode ;;
    esac
  else
    # It draws on the terminal's other screen; what it has done is printed above the prompt.
    said=$(command beforehand rewind --at-prompt </dev/tty 2>&1)
    if [[ -n $said ]]; then
      printf '%s\n' "$said"
    fi
  fi
  bind -m "$keymap" "\"\\C-x\\C-_2\": $then"
}

_beforehand_bind() {
  local keymap=$1 key bound
  bound=$(bind -m "$keymap" -p; bind -m "$keymap" -s; bind -m "$keymap" -X)
  bind -m "$keymap" -x "\"\\C-x\\C-_1\": _beforehand_rewind $keymap"
  bind -m "$keymap" '"\C-x\C-_2": ""'
  bind -m "$keymap" '"\e\e": "\C-x\C-_1\C-x\C-_2"'
  # With Alt, many terminals send Esc before what a key is, and so two of them for an arrow key.
  for key in '[A' '[B' '[C' '[D' '[F' '[H' OA OB OC OD OF OH '[1~' '[3~' '[4~' '[5~' '[6~'; do
    if [[ $bound != *"\"\\e\\e$key\""* ]]; then
      bind -m "$keymap" "\"\\e\\e$key\": \"\\e$key\""
    fi
  done
}

_beforehand_bind emacs
_beforehand_bind vi-insert
_beforehand_bind vi-command
unset -f _beforehand_bind

fi
