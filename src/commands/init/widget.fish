# beforehand: Esc Esc at an empty prompt opens the picker. Loaded by
#   beforehand init fish | source

if status is-interactive

function _beforehand_rewind
    # It draws on the terminal's other screen; what it has done is printed above a new prompt.
    set -l said (command beforehand rewind --at-prompt </dev/tty 2>&1)
    if test -n "$said"
        echo
        printf '%s\n' $said
    end
    commandline -f repaint
end

# fish takes an Esc alone after 30 ms, so two of them are two keys; the second within a second counts.
function _beforehand_escape
    set -l now (date +%s)
    if test -z "$(commandline)"; and not commandline --paging-mode
        if set -q _beforehand_escaped; and test (math $now - $_beforehand_escaped) -le 1
            set -e _beforehand_escaped
            _beforehand_rewind
            return
        end
        set -g _beforehand_escaped $now
    else
        set -e _beforehand_escaped
    end
    commandline -f cancel
    if test "$fish_key_bindings" = fish_vi_key_bindings
        commandline -f repaint-mode
    end
end

# In vi mode the first Esc leaves the insert mode.
function _beforehand_mode --on-variable fish_bind_mode
    if test "$fish_bind_mode" = default
        set -g _beforehand_escaped (date +%s)
    end
end

bind -M default \e _beforehand_escape

end
