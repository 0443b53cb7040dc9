# shellcheck shell=bash
# The check library (Depth paper, Appendix F, Table 7). It travels with a task, as tests/checks.sh,
# and needs bash 4.4 and coreutils alone.
#
#   bash checks.sh SCRIPT    runs a check script: prints PASS name or FAIL name: reason for each check,
#                            ends with 0 if all passed and the last line was reached, else with 1, and
#                            writes 1 or 0 to /logs/verifier/reward.txt where that folder exists;
#                            after --without, names of checks whose outcome does not count (DROP name)
#   . checks.sh              defines the functions in a shell of one's own
#
# A check script is bash. NAME is a short name (letters, digits, . _ -), used once in a script.
#
#   expect_ok NAME -- CMD…                     CMD ends with status 0
#   expect_out NAME PATTERN -- CMD…            a line of its output matches, whatever the status
#   expect_no_out NAME PATTERN -- CMD…         status 0, and no line of its output matches
#   expect_fail NAME PATTERN -- CMD…           CMD fails and a line matches: an access that is refused
#   expect_eq NAME ACTUAL EXPECTED [KIND]      equal as text (default), int, num, version, bool, set,
#                                              seq or exact
#   expect_file NAME PATH                      a non-empty file or a directory
#   expect_port NAME HOST PORT                 a TCP connection succeeds
#   expect_proc NAME PROGRAM                   a process runs PROGRAM, from any path, with any
#                                              arguments, directly or through an interpreter
#   expect_proc_arg NAME PROGRAM ARG…          such a process has every ARG on its command line
#   pass NAME, fail NAME REASON                a result that the script decides itself
#
#   field FILE KEY                             the value of KEY in name: value lines or JSON
#   column FILE NAME:POS                       a column of a table, one value a line
#   cell FILE KEYNAME:POS KEYVALUE NAME:POS    NAME in the row whose KEYNAME is KEYVALUE
#   rows FILE NAME:POS                         the number of data rows
#   proc_start PROGRAM                         seconds since the epoch, with two decimals, at which the
#                                              newest process that runs PROGRAM was started
#
# CMD is a program, a shell function or a builtin; it gets no input, its output is both of its
# streams, and it may take 120 seconds. PATTERN is an extended regular expression. Patterns, output
# and values are compared without regard to the case of ASCII letters, to runs of spaces and to
# spaces around : and =; key and column names also take -, _ and spaces for the same. A reader that
# finds nothing, or values that contradict each other, prints nothing and fails. POS is the place of a column, from 1,
# for tables without a header line. The outcome depends on neither locale nor shell options.

{ export LC_ALL=C.UTF-8; } 2>/dev/null # for the script and its commands: texts are not translated
declare -gA _ck_names=()
_ck_seconds=120
_ck_script_seconds=600
_ck_most_bytes=$((64 << 20))

# --- results ---

# Whoever runs the script may have defined where results go.
declare -F report >/dev/null || report() { printf '%s\n' "$*"; }

pass() { _ck pass "$@"; }
fail() { _ck fail "$@"; }
expect_ok() { _ck expect_ok "$@"; }
expect_out() { _ck expect_out "$@"; }
expect_no_out() { _ck expect_no_out "$@"; }
expect_fail() { _ck expect_fail "$@"; }
expect_eq() { _ck expect_eq "$@"; }
expect_file() { _ck expect_file "$@"; }
expect_port() { _ck expect_port "$@"; }
expect_proc() { _ck expect_proc "$@"; }
expect_proc_arg() { _ck expect_proc_arg "$@"; }

field() { _ck_calm _ck_field "$@"; }
column() { _ck_calm _ck_column "$@"; }
cell() { _ck_calm _ck_cell "$@"; }
rows() { _ck_calm _ck_rows "$@"; }
proc_start() { _ck_calm _ck_proc_start "$@"; }

# Runs a function of the library free of the script's shell options, IFS and locale.
_ck_calm() {
    local - IFS=$' \t\n' LC_ALL=C nocase status _ck_options=$SHELLOPTS
    set +efuvx +o pipefail
    shopt -q nocasematch
    nocase=$?
    shopt -u nocasematch
    "$@"
    status=$?
    ((nocase)) || shopt -s nocasematch
    return "$status"
}

# A check: its function prints nothing, and returns 0 or puts the reason into REPLY.
_ck() { _ck_calm _ck_check "$@"; }
_ck_check() {
    local kind=$1 name=${2-} REPLY=
    if [[ ! $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$ ]]; then
        _ck_clip "$name"
        report "FAIL unnamed: '$REPLY' is no check name (letters, digits, . _ -)"
    elif [[ -n ${_ck_names[$name]-} ]]; then
        report "FAIL $name: the name is used twice in this script"
    else
        _ck_names[$name]=used
        if "_ck_$kind" "${@:3}"; then
            report "PASS $name"
        else
            _ck_clip "$REPLY"
            report "FAIL $name: $REPLY"
        fi
    fi
    return 0
}

# A value as part of a reason: one line, not long, nothing unprintable.
_ck_clip() {
    local value=${1//[[:space:]]/ }
    value=${value//[[:cntrl:]]/?}
    ((${#value} <= 400)) || value=${value:0:400}...
    REPLY=$value
}

_ck_pass() { REPLY="usage: pass NAME" && (($# == 0)); }
_ck_fail() {
    REPLY=$*
    [[ -n $REPLY ]] || REPLY="usage: fail NAME REASON"
    return 1
}

# --- commands ---

# Runs a command within the time limit. Sets _ck_status, _ck_lines (its output) and, where it did not
# end by itself or cannot be looked at, REPLY, and then fails. The output goes into a file without a
# name, so that nothing stays and a daemon that keeps its output open holds nobody up.
_ck_capture() {
    local file out pid mark size option pipe said ended=
    _ck_status=0 _ck_lines=()
    if [[ -z $(type -t -- "$1") ]]; then
        REPLY="there is no command $1"
        return 1
    fi
    file=$(mktemp) || {
        REPLY="no temporary file can be made"
        return 1
    }
    exec {out}<>"$file"
    rm -f -- "$file"
    mark=$RANDOM$RANDOM$RANDOM
    # The subshell stays until the command has ended and says how, since bash at times forgets the
    # status of a process substitution. It is asked only where the subshell itself was ended.
    exec {pipe}< <(
        exec {said}>&1
        export LC_ALL=C.UTF-8 CHECK_COMMAND=$mark
        # A function of the script runs under the script's own options.
        for option in errexit nounset noglob pipefail; do
            [[ :$_ck_options: != *:$option:* ]] || set -o "$option"
        done
        trap 'printf %s "$?" >&"$said"' EXIT
        "$@" </dev/null >"/dev/fd/$out" 2>&1 9>&- {out}>&- {said}>&-
        exit "$?"
    ) 2>/dev/null
    pid=$!
    read -r -t "$_ck_seconds" -d '' -u "$pipe" ended
    if (($? > 128)); then
        REPLY="still ran after $_ck_seconds seconds"
        { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null
        _ck_end_marked "CHECK_COMMAND=$mark"
        exec {pipe}<&- {out}>&-
        return 1
    fi
    wait "$pid" 2>/dev/null
    _ck_status=${ended:-$?}
    exec {pipe}<&-
    size=$(stat -L -c %s "/dev/fd/$out")
    if ((size > _ck_most_bytes)); then
        REPLY="printed more than $((_ck_most_bytes >> 20)) MB"
        exec {out}>&-
        return 1
    fi
    mapfile -t _ck_lines < <(tr -d '\000' <"/dev/fd/$out")
    exec {out}>&-
}

# Ends the processes that have this in their environment.
_ck_end_marked() {
    local process variable round found
    for round in 1 2 3 4 5; do
        found=
        for process in /proc/[0-9]*; do
            while IFS= read -r -d '' variable; do
                [[ $variable != "$1" ]] || { kill -KILL "${process#/proc/}" && found=$round; }
            done <"$process/environ"
        done 2>/dev/null
        [[ -n $found ]] || break
    done
}

_ck_said() {
    local number
    for ((number = ${#_ck_lines[@]} - 1; number >= 0; number--)); do
        if [[ ${_ck_lines[number]} == *[![:space:]]* ]]; then
            REPLY="; it said: ${_ck_lines[number]}"
            return
        fi
    done
    REPLY="; it printed nothing"
}

# The values around "--": sets _ck_pattern and _ck_command.
_ck_arguments() { # WITH_PATTERN …
    local with=$1
    shift
    _ck_pattern=
    if ((with && $#)); then
        _ck_pattern=$1
        shift
    fi
    if [[ ${1-} != -- || -z ${2-} ]]; then
        REPLY="usage: NAME -- CMD"
        ((!with)) || REPLY="usage: NAME PATTERN -- CMD"
        return 1
    fi
    shift
    _ck_command=("$@")
    ((!with)) || _ck_is_pattern
}

_ck_is_pattern() {
    if [[ ! $_ck_pattern =~ [^[:space:]] ]]; then
        REPLY="the pattern is empty, so any output matches it"
        return 1
    fi
    # shellcheck disable=SC2319 # the status of the match is what is asked for
    [[ '' =~ $_ck_pattern ]]
    if (($? == 2)); then
        REPLY="the pattern is no regular expression: $_ck_pattern"
        return 1
    fi
}

# Whether a line of the output matches; REPLY is that line.
_ck_matches() {
    local line loose
    _ck_squeeze "$_ck_pattern"
    loose=$REPLY
    shopt -s nocasematch
    for line in "${_ck_lines[@]}"; do
        if [[ $line =~ $_ck_pattern ]] || { _ck_trimmed "$line" && [[ $REPLY =~ $loose ]]; }; then
            shopt -u nocasematch
            REPLY=$line
            return 0
        fi
    done
    shopt -u nocasematch
    return 1
}

_ck_expect_ok() {
    _ck_arguments 0 "$@" && _ck_capture "${_ck_command[@]}" || return 1
    ((_ck_status == 0)) || { _ck_said && REPLY="ended with status $_ck_status$REPLY" && return 1; }
}
_ck_expect_out() {
    _ck_arguments 1 "$@" && _ck_capture "${_ck_command[@]}" || return 1
    _ck_matches || { _ck_said && REPLY="no line matches $_ck_pattern$REPLY" && return 1; }
}
_ck_expect_no_out() {
    _ck_arguments 1 "$@" && _ck_capture "${_ck_command[@]}" || return 1
    ((_ck_status == 0)) || { _ck_said && REPLY="ended with status $_ck_status$REPLY" && return 1; }
    ! _ck_matches || { REPLY="a line matches $_ck_pattern: $REPLY" && return 1; }
}
_ck_expect_fail() {
    _ck_arguments 1 "$@" && _ck_capture "${_ck_command[@]}" || return 1
    ((_ck_status != 0)) || { _ck_said && REPLY="did not fail$REPLY" && return 1; }
    _ck_matches || { _ck_said && REPLY="failed, but no line matches $_ck_pattern$REPLY" && return 1; }
}

# --- values ---

# Runs of blanks are one, none stands beside : or =.
_ck_squeeze() {
    local value=${1//[$'\t\r\v\f']/ }
    while [[ $value == *'  '* ]]; do value=${value//  / }; done
    value=${value// :/:} value=${value//: /:} value=${value// =/=}
    REPLY=${value//= /=}
}
_ck_trimmed() {
    _ck_squeeze "$1"
    REPLY=${REPLY# }
    REPLY=${REPLY% }
}
# A value without surrounding white space and quotes.
_ck_bare() {
    local value=$1 before=
    while [[ $value != "$before" ]]; do
        before=$value
        value=${value#"${value%%[![:space:]]*}"}
        value=${value%"${value##*[![:space:]]}"}
        case $value in
        \"*\" | \'*\' | \`*\`) ((${#value} < 2)) || value=${value:1:${#value}-2} ;;
        esac
    done
    REPLY=$value
}
_ck_text() {
    local value
    _ck_bare "$1"
    _ck_squeeze "${REPLY,,}"
    value=${REPLY//$' \n'/$'\n'}
    REPLY=${value//$'\n '/$'\n'}
}
# The name of a key or column.
_ck_key() {
    _ck_bare "$1"
    REPLY=${REPLY,,}
    _ck_trimmed "${REPLY//[-_$'\n']/ }"
}
# The first number, written in one way.
_ck_number() {
    local value=$1 sign whole fraction power after before places
    [[ $value =~ [+-]?([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})? ]] || return 1
    before=${value%%"${BASH_REMATCH[0]}"*} after=${value#*"${BASH_REMATCH[0]}"}
    whole=${BASH_REMATCH[1]} power=${BASH_REMATCH[3]#[eE]} sign=
    [[ ${BASH_REMATCH[0]} != -* || $before == *[[:alnum:]._] ]] || sign=-
    [[ $after != [[:alnum:]]* ]] || power=0
    fraction=
    [[ $whole != *.* ]] || fraction=${whole#*.} whole=${whole%%.*}
    places=${power#[+-]}
    places=$((10#${places:-0}))
    if [[ $power == -* ]]; then
        printf -v before '%0*d' "$((places + 1))" 0
        whole=$before$whole fraction=${whole: -places:places}$fraction
        ((places == 0)) || whole=${whole:0:${#whole}-places}
    else
        printf -v before '%0*d' "$((places + 1))" 0
        fraction=$fraction${before:1} whole=$whole${fraction:0:places} fraction=${fraction:places}
    fi
    whole=${whole#"${whole%%[!0]*}"} fraction=${fraction%"${fraction##*[!0]}"}
    REPLY=${whole:-0}${fraction:+.$fraction}
    [[ $REPLY == 0 ]] || REPLY=$sign$REPLY
}
_ck_version() {
    local part found=
    [[ $1 =~ [0-9]+(\.[0-9]+)* ]] || return 1
    local IFS=.
    for part in ${BASH_REMATCH[0]}; do
        part=${part#"${part%%[!0]*}"}
        found+=.${part:-0}
    done
    REPLY=${found#.}
}
_ck_bool() {
    _ck_text "$1"
    case $REPLY in
    yes | true | pass | ok | on | 1) REPLY=true ;;
    no | false | fail | "not ok" | off | 0) REPLY=false ;;
    *) return 1 ;;
    esac
}
# The items of a list: split at commas and newlines, or at spaces where it has neither.
_ck_items() {
    local value quote line item cells lines
    _ck_items=()
    _ck_bare_space "$1"
    value=$REPLY
    case $value in
    "["*"]" | "{"*"}" | "("*")")
        _ck_bare_space "${value:1:${#value}-2}"
        value=$REPLY
        ;;
    esac
    # Quotes around the whole list, not those of its first and last items.
    for quote in \" \' \`; do
        [[ $value != "$quote"*"$quote" || ${value:1:${#value}-2} == *"$quote"* ]] || value=${value:1:${#value}-2}
    done
    mapfile -t lines <<<"$value"
    for line in "${lines[@]}"; do
        if [[ $value == *[,$'\n']* ]]; then
            _ck_split comma "$line"
        else
            _ck_split words "$line"
        fi
        for item in "${cells[@]}"; do
            _ck_text "$item"
            [[ -z $REPLY ]] || _ck_items+=("$REPLY")
        done
    done
}

_ck_expect_eq() {
    local actual expected kind=${3-text} shown
    if (($# < 2 || $# > 3)); then
        REPLY="usage: expect_eq NAME ACTUAL EXPECTED [KIND]"
        return 1
    fi
    _ck_bare "$2"
    if [[ -z $REPLY && $kind != set ]]; then
        REPLY="the expected value is empty"
        return 1
    fi
    case $kind in
    exact) expected=$2 actual=$1 ;;
    text)
        _ck_text "$2" && expected=$REPLY
        _ck_text "$1" && actual=$REPLY
        ;;
    int | num | version | bool)
        _ck_as "$kind" "expected value" "$2" && expected=$REPLY || return 1
        _ck_as "$kind" value "$1" && actual=$REPLY || return 1
        ;;
    set | seq)
        _ck_same_items "$kind" "$1" "$2"
        return
        ;;
    *)
        REPLY="there is no kind $kind (text, int, num, version, bool, set, seq, exact)"
        return 1
        ;;
    esac
    [[ $actual == "$expected" ]] && return
    _ck_clip "$1"
    shown=${REPLY:0:150}
    _ck_clip "$2"
    REPLY="is '$shown', expected '${REPLY:0:150}'"
    return 1
}
_ck_as() { # KIND WHICH VALUE
    local ok=1
    case $1 in
    int) _ck_number "$3" && [[ $REPLY != *.* ]] || ok=0 ;;
    num) _ck_number "$3" || ok=0 ;;
    version) _ck_version "$3" || ok=0 ;;
    bool) _ck_bool "$3" || ok=0 ;;
    esac
    ((ok)) && return
    local -A what=([int]="has no whole number" [num]="has no number" [version]="has no version" [bool]="is neither true nor false")
    _ck_clip "$3"
    REPLY="the $2 ${what[$1]}: '${REPLY:0:150}'"
    return 1
}
_ck_same_items() { # set|seq ACTUAL EXPECTED
    local -A expected=() present=()
    local item wanted got
    _ck_items "$3"
    wanted=("${_ck_items[@]}")
    _ck_items "$2"
    got=("${_ck_items[@]}")
    if [[ $1 == set ]]; then
        for item in "${wanted[@]}"; do expected["=$item"]=1; done
        for item in "${got[@]}"; do
            present["=$item"]=1
            REPLY="has '$item', which is not expected"
            [[ -n ${expected["=$item"]-} ]] || return 1
        done
        for item in "${wanted[@]}"; do
            REPLY="lacks '$item'"
            [[ -n ${present["=$item"]-} ]] || return 1
        done
        return 0
    fi
    REPLY="the expected value is empty"
    ((${#wanted[@]})) || return 1
    REPLY="has ${#got[@]} items, expected ${#wanted[@]}"
    ((${#wanted[@]} == ${#got[@]})) || return 1
    for item in "${!wanted[@]}"; do
        REPLY="item $((item + 1)) is '${got[item]}', expected '${wanted[item]}'"
        [[ ${wanted[item]} == "${got[item]}" ]] || return 1
    done
}

# --- files, ports, processes ---

_ck_expect_file() {
    local path=${1-}
    if (($# != 1)) || [[ -z $path ]]; then
        REPLY="usage: expect_file NAME PATH"
        return 1
    fi
    [[ ! -d $path ]] || return 0
    REPLY="$path is missing"
    [[ -e $path ]] || return 1
    REPLY="$path is neither a file nor a directory"
    [[ -f $path ]] || return 1
    REPLY="$path is empty"
    [[ -s $path ]]
}
_ck_expect_port() {
    local host=${1-} port=${2-}
    if (($# != 2)) || [[ -z $host || ! $port =~ ^[0-9]{1,8}$ ]] || ((10#$port < 1 || 10#$port > 65535)); then
        REPLY="usage: expect_port NAME HOST PORT"
        return 1
    fi
    # shellcheck disable=SC2016 # expanded by that bash
    _ck_capture bash -c 'exec 3<>"/dev/tcp/$1/$2"' connect "$host" "$port" || return 1
    ((_ck_status == 0)) || { REPLY="no connection to $host:$port" && return 1; }
}

# Whether this command line, as words, runs a program; the interpreter's options are passed over.
_ck_runs() { # PROGRAM WORD…
    local program=$1 first=${2-} word inline='' valued='' named=''
    shift 2
    [[ ${first##*/} != "$program" ]] || return 0
    # A process that rewrote its command line left one string: "nginx: worker process".
    (($#)) || first=${first%%[[:space:]]*}
    first=${first%:} first=${first##*/} first=${first#-}
    [[ $first != "$program" ]] || return 0
    # Options with code in place of a program, with a value, and with the program as their value.
    case $first in
    sh | bash | dash | ash | ksh | zsh) inline='^-[a-z]*c' valued='^[-+][oO]$' ;;
    python | python[0-9]*) inline='^-[bBdEiIOPqsSuvx]*c' valued='^-[WX]$' named='^-m$' ;;
    perl*) inline='^-[wWntpils]*[eE]' valued='^-I$' ;;
    ruby*) inline='^-e' valued='^-[Ir]$' ;;
    node | nodejs) inline='^(-[ep]|--eval|--print)' valued='^(-r|--require|--import)$' ;;
    java) valued='^(-cp|-classpath|--class-path|-p|--module-path)$' named='^(-jar|-m|--module)$' ;;
    php*) inline='^-r' valued='^-[cdS]$' ;;
    busybox | lua* | tclsh* | wish* | Rscript | guile* | ld-linux* | ld-musl* | ld.so) ;;
    *) return 1 ;;
    esac
    while (($#)); do
        word=$1
        shift
        if [[ -n $inline && $word =~ $inline ]]; then
            return 1
        elif [[ -n $valued && $word =~ $valued ]]; then
            (($# == 0)) || shift
        elif [[ $word != [-+]* ]]; then
            [[ ${word##*/} == "$program" || ($first == java && ${word##*.} == "$program") ]]
            return
        elif [[ -n $named && $word =~ $named ]]; then
            word=${1-}
            [[ ${word##*/} == "$program" ]]
            return
        fi
    done
    return 1
}

# Processes that run a program, without the checks' own: _ck_pids and _ck_starts (in clock ticks).
_ck_processes() { # PROGRAM ARG…
    local program=${1##*/} path process stat pid above words word line
    local -A parent=() begun=() own=()
    shift
    _ck_pids=() _ck_starts=()
    path=$(type -P -- "$program")
    # One file that is many programs tells nothing.
    for word in busybox toybox coreutils; do
        [[ -z $path || ! $path -ef $(type -P "$word") ]] || path=
    done
    for process in /proc/[0-9]*; do
        { IFS= read -r -d '' stat <"$process/stat" || [[ -n $stat ]]; } 2>/dev/null || continue
        # shellcheck disable=SC2206 # numbers
        words=(${stat##*) })
        [[ ${words[0]} != [ZXx] ]] || continue
        pid=${process#/proc/}
        parent[$pid]=${words[1]} begun[$pid]=${words[19]}
    done
    # Those of the checks are this shell's descendants and ancestors, but for the container's first.
    for ((pid = $$; pid > 1; pid = ${parent[$pid]:-0})); do own[$pid]=above; done
    for pid in "${!parent[@]}"; do
        for ((above = pid; above > 1; above = ${parent[$above]:-0})); do
            if ((above == $$)); then
                own[$pid]=below
                break
            fi
        done
    done
    for pid in "${!parent[@]}"; do
        [[ -z ${own[$pid]-} ]] || continue
        { mapfile -d '' -t words <"/proc/$pid/cmdline"; } 2>/dev/null || continue
        ((${#words[@]})) || continue
        line=" ${words[*]} "
        if ! _ck_runs "$program" "${words[@]}"; then
            # A program that gave itself another name still is its file, and a script started by
            # its own name keeps that.
            { IFS= read -r word <"/proc/$pid/comm"; } 2>/dev/null || continue
            [[ ($word == "$program" && ${#program} -le 15) || (-n $path && /proc/$pid/exe -ef $path) ]] || continue
        fi
        for word in "$@"; do
            [[ $line == *" $word "* ]] || continue 2
        done
        _ck_pids+=("$pid") _ck_starts+=("${begun[$pid]}")
    done
}
_ck_expect_proc() {
    if (($# != 1)) || [[ -z ${1-} ]]; then
        REPLY="usage: expect_proc NAME PROGRAM"
        return 1
    fi
    _ck_processes "$1"
    ((${#_ck_pids[@]})) || { REPLY="no process runs $1" && return 1; }
}
_ck_expect_proc_arg() {
    local word
    for word in "$@"; do [[ -n $word ]] || set --; done
    if (($# < 2)); then
        REPLY="usage: expect_proc_arg NAME PROGRAM ARG…"
        return 1
    fi
    _ck_processes "$@"
    ((${#_ck_pids[@]})) && return
    _ck_processes "$1"
    REPLY="no process runs $1"
    ((${#_ck_pids[@]} == 0)) || REPLY+=" with ${*:2}"
    return 1
}

# --- readers ---

_ck_no() {
    printf '%s\n' "$*" >&2
    return 1
}
# The lines of a report file: _ck_lines.
_ck_read() {
    [[ -f $1 ]] || { _ck_no "$1 is no file" || return 1; }
    [[ -r $1 ]] || { _ck_no "$1 cannot be read" || return 1; }
    mapfile -t _ck_lines < <(head -c "$_ck_most_bytes" -- "$1" | tr -d '\000\r\037')
    ((${#_ck_lines[@]} == 0)) || _ck_lines[0]=${_ck_lines[0]#$'\xef\xbb\xbf'}
}
# The one value that was found, in _ck_found.
_ck_print_found() { # WHAT
    local value
    ((${#_ck_found[@]})) || { _ck_no "$1 is not there" || return 1; }
    for value in "${_ck_found[@]:1}"; do
        [[ $value == "${_ck_found[0]}" ]] || { _ck_no "$1 is there with different values" || return 1; }
    done
    printf '%s\n' "${_ck_found[0]}"
}

_ck_field() {
    local file=${1-} wanted text number
    (($# == 2)) && [[ -n $2 ]] || { _ck_no "usage: field FILE KEY" || return 1; }
    _ck_read "$file" || return 1
    _ck_key "$2"
    wanted=$REPLY
    _ck_found=()
    printf -v text '%s\n' "${_ck_lines[@]}"
    if [[ $text =~ ^[[:space:]]*\{ ]] && _ck_json "$text"; then
        for number in "${!_ck_paths[@]}"; do
            [[ ${_ck_paths[number]} != "$wanted" ]] || _ck_found+=("${_ck_values[number]}")
        done
        if ((${#_ck_found[@]} == 0)); then
            for number in "${!_ck_paths[@]}"; do
                [[ ${_ck_paths[number]} != *".$wanted" ]] || _ck_found+=("${_ck_values[number]}")
            done
        fi
    else
        _ck_field_of_lines "$wanted"
    fi
    _ck_print_found "$2 in $file"
}
_ck_field_of_lines() {
    local line left rest cells
    for line in "${_ck_lines[@]}"; do
        [[ ! $line =~ ^[[:space:]]*\# ]] || continue
        [[ ! $line =~ ^[[:space:]]*[-*+][[:space:]]+(.*)$ ]] || line=${BASH_REMATCH[1]}
        # A key may itself have a colon: every separator may be the one after it.
        left='' rest=$line
        while [[ $rest =~ ^([^:=]*[:=])(.*)$ ]]; do
            left+=${BASH_REMATCH[1]} rest=${BASH_REMATCH[2]}
            _ck_key "${left%?}"
            REPLY=${REPLY#\*\*} REPLY=${REPLY%\*\*}
            if [[ $REPLY == "$1" ]]; then
                _ck_bare "${rest#\*\*}"
                _ck_found+=("$REPLY")
                break
            fi
        done
    done
    ((${#_ck_found[@]} == 0)) || return 0
    # Nor need there be a colon, in a table of two columns.
    for line in "${_ck_lines[@]}"; do
        for rest in bar tab comma gaps; do
            _ck_split "$rest" "$line"
            ((${#cells[@]} == 2)) || continue
            _ck_key "${cells[0]}"
            if [[ $REPLY == "$1" ]]; then
                _ck_bare "${cells[1]}"
                _ck_found+=("$REPLY")
                break
            fi
        done
    done
}

# The scalars of a JSON object: _ck_paths (names joined by dots) and _ck_values. An array of scalars
# is one value, an item a line.
_ck_json() {
    local rest=$1 token depth=0
    _ck_paths=() _ck_values=()
    _ck_token && _ck_json_value "" && ! _ck_token && [[ -z $rest ]]
}
_ck_token() {
    local scalar='^[[:space:]]*("([^"\]|\\.)*"|[][{}:,]|-?[0-9][0-9.eE+-]*|true|false|null)'
    if [[ ! $rest =~ $scalar ]]; then
        [[ $rest == *[![:space:]]* ]] || rest=
        return 1
    fi
    token=${BASH_REMATCH[1]} rest=${rest:${#BASH_REMATCH[0]}}
}
_ck_json_value() { # PATH: token is the first one of the value
    local path=$1 name items=() plain=1
    case $token in
    "{")
        ((++depth < 60)) && _ck_token || return 1
        [[ $token != "}" ]] || { ((depth--)) && return 0; }
        while [[ $token == \"* ]]; do
            _ck_unquote && _ck_key "$REPLY"
            name=$REPLY
            _ck_token && [[ $token == : ]] && _ck_token && _ck_json_value "${path:+$path.}$name" || return 1
            _ck_token || return 1
            [[ $token != "}" ]] || { ((depth--)) && return 0; }
            [[ $token == , ]] && _ck_token || return 1
        done
        return 1
        ;;
    "[")
        ((++depth < 60)) && _ck_token || return 1
        while [[ $token != "]" ]]; do
            case $token in
            [\[\{]*) plain=0 ;;
            *) _ck_unquote && items+=("$REPLY") ;;
            esac
            _ck_json_value "$path." && _ck_token || return 1
            [[ $token != "]" ]] || break
            [[ $token == , ]] && _ck_token && [[ $token != "]" ]] || return 1
        done
        ((depth--))
        if ((plain)); then
            printf -v name '%s\n' "${items[@]}"
            _ck_paths+=("$path") _ck_values+=("${name%$'\n'}")
        fi
        ;;
    [\]\}:,]) return 1 ;;
    *)
        # The items of an array are kept with it.
        [[ $path != *. ]] || return 0
        _ck_unquote
        _ck_paths+=("$path") _ck_values+=("$REPLY")
        ;;
    esac
}
# The text of a string's token; other tokens as they are.
_ck_unquote() {
    local left=$token text='' code low
    REPLY=$token
    [[ $token == \"* ]] || return 0
    left=${left:1:${#left}-2}
    while [[ $left =~ ^([^\\]*)\\(.)(.*)$ ]]; do
        text+=${BASH_REMATCH[1]} left=${BASH_REMATCH[3]}
        case ${BASH_REMATCH[2]} in
        n) text+=$'\n' ;;
        t) text+=$'\t' ;;
        [bfr]) text+=' ' ;;
        u)
            code=$((16#0${left:0:4})) left=${left:4}
            if ((code >= 0xD800 && code < 0xDC00)) && [[ $left =~ ^\\u([dD][c-fC-F][0-9a-fA-F]{2}) ]]; then
                low=$((16#${BASH_REMATCH[1]})) left=${left:6}
                code=$((0x10000 + ((code - 0xD800) << 10) + low - 0xDC00))
            fi
            _ck_utf8 "$code"
            text+=$REPLY
            ;;
        *) text+=${BASH_REMATCH[2]} ;;
        esac
    done
    REPLY=$text$left
}
_ck_utf8() {
    local code=$1 bytes byte text=''
    if ((code < 0x80)); then
        bytes=("$code")
    elif ((code < 0x800)); then
        bytes=($((0xC0 | code >> 6)) $((0x80 | code & 63)))
    elif ((code < 0x10000)); then
        bytes=($((0xE0 | code >> 12)) $((0x80 | code >> 6 & 63)) $((0x80 | code & 63)))
    else
        bytes=($((0xF0 | code >> 18)) $((0x80 | code >> 12 & 63)) $((0x80 | code >> 6 & 63)) $((0x80 | code & 63)))
    fi
    for byte in "${bytes[@]}"; do
        printf -v byte '\\x%x' "$byte"
        text+=$byte
    done
    printf -v REPLY '%b' "$text"
}

# One line of a table in its cells, without surrounding space and quotes: cells.
_ck_split() { # bar|tab|comma|gaps|words LINE
    local line=$2 cell=
    cells=()
    [[ $1 == tab ]] || _ck_bare_space "$line"
    [[ $1 == tab ]] || line=$REPLY
    case $1 in
    bar)
        line=${line#|}
        line=${line%|}
        while [[ $line == *'|'* ]]; do
            cells+=("${line%%|*}")
            line=${line#*|}
        done
        cells+=("$line")
        ;;
    tab)
        while [[ $line == *$'\t'* ]]; do
            cells+=("${line%%$'\t'*}")
            line=${line#*$'\t'}
        done
        cells+=("$line")
        ;;
    comma)
        while [[ $line =~ ^[[:space:]]*(\"(([^\"]|\"\")*)\"|\'([^\']*)\'|[^,]*)[[:space:]]*(,|$) ]]; do
            cell=${BASH_REMATCH[1]}
            line=${line:${#BASH_REMATCH[0]}}
            [[ $cell != \"* ]] || cell=${cell//\"\"/\"}
            cells+=("$cell")
            [[ ${BASH_REMATCH[5]} == , ]] || break
        done
        [[ -z $line ]] || cells+=("$line")
        ;;
    gaps)
        line=${line//$'\t'/  }
        while [[ $line == *'  '* ]]; do
            cells+=("${line%%  *}")
            line=${line#*  }
            line=${line#"${line%%[! ]*}"}
        done
        cells+=("$line")
        ;;
    words) read -r -a cells <<<"$line" ;;
    esac
}
_ck_bare_space() {
    local value=$1
    value=${value#"${value%%[![:space:]]*}"}
    REPLY=${value%"${value##*[![:space:]]}"}
}

# Reads a table: _ck_rows, the data rows (cells joined by \037), and _ck_places, the place of each
# column asked for, from 0. The header line is the first line if it has one of their names.
_ck_table() { # FILE NAME:POS…
    local file=$1 spec line mode cells=() wanted=() fallback=() kept=() number place header
    shift
    for spec in "$@"; do
        if [[ ! $spec =~ ^(.*[^:]):([1-9][0-9]{0,3})$ ]]; then
            _ck_no "'$spec' is no NAME:POS" || return 1
        fi
        fallback+=($((10#${BASH_REMATCH[2]} - 1)))
        _ck_key "${BASH_REMATCH[1]}"
        wanted+=("$REPLY")
    done
    _ck_read "$file" || return 1
    for line in "${_ck_lines[@]}"; do
        [[ $line == *[![:space:]]* ]] || continue
        [[ ! $line =~ ^[-+|:=\ ]*[-=]{3}[-+|:=\ ]*$ ]] || continue
        [[ ! $line =~ ^[[:space:]]*\([0-9]+\ rows?\)[[:space:]]*$ ]] || continue
        kept+=("$line")
    done
    _ck_rows=() _ck_places=("${fallback[@]}")
    ((${#kept[@]})) || return 0
    _ck_choose_mode
    mode=$REPLY
    _ck_split "$mode" "${kept[0]#\#}"
    header=0
    for place in "${!cells[@]}"; do
        _ck_key "${cells[place]}"
        for number in "${!wanted[@]}"; do
            [[ $REPLY != "${wanted[number]}" ]] || _ck_places[number]=$place header=1
        done
    done
    for line in "${kept[@]:header}"; do
        _ck_split "$mode" "$line"
        for number in "${!cells[@]}"; do
            _ck_bare "${cells[number]}"
            cells[number]=$REPLY
        done
        printf -v spec '%s\037' "${cells[@]}"
        _ck_rows+=("$spec")
    done
}
# How the lines are divided: alike in all of them, and so that a name that is asked for heads a column.
_ck_choose_mode() {
    local mode line count alike named name each first='' first_named=''
    for mode in bar tab comma gaps words; do
        _ck_split "$mode" "${kept[0]#\#}"
        named=0
        for each in "${cells[@]}"; do
            _ck_key "$each"
            for name in "${wanted[@]}"; do [[ $REPLY != "$name" ]] || named=1; done
        done
        alike=1 count=
        for line in "${kept[@]}"; do
            _ck_split "$mode" "$line"
            ((${#cells[@]} > 1 && ${#cells[@]} == ${count:=${#cells[@]}})) || {
                alike=0
                break
            }
        done
        if ((alike && named)); then
            REPLY=$mode
            return
        fi
        ((!alike)) || first=${first:-$mode}
        ((!named)) || first_named=${first_named:-$mode}
    done
    REPLY=${first_named:-${first:-bar}}
}
_ck_at() { # ROW PLACE
    local row=$1 skipped
    for ((skipped = 0; skipped < $2; skipped++)); do row=${row#*$'\037'}; done
    REPLY=${row%%$'\037'*}
}
_ck_column() {
    local row
    (($# == 2)) || { _ck_no "usage: column FILE NAME:POS" || return 1; }
    _ck_table "$@" || return 1
    for row in "${_ck_rows[@]}"; do
        _ck_at "$row" "${_ck_places[0]}"
        printf '%s\n' "$REPLY"
    done
}
_ck_cell() {
    local row wanted
    (($# == 4)) || { _ck_no "usage: cell FILE KEYNAME:POS KEYVALUE NAME:POS" || return 1; }
    _ck_table "$1" "$2" "$4" || return 1
    _ck_text "$3"
    wanted=$REPLY
    _ck_found=()
    for row in "${_ck_rows[@]}"; do
        _ck_at "$row" "${_ck_places[0]}"
        _ck_text "$REPLY"
        [[ $REPLY == "$wanted" ]] || continue
        _ck_at "$row" "${_ck_places[1]}"
        _ck_found+=("$REPLY")
    done
    _ck_print_found "$4 of $3 in $1"
}
_ck_rows() {
    (($# == 2)) || { _ck_no "usage: rows FILE NAME:POS" || return 1; }
    _ck_table "$@" || return 1
    printf '%s\n' "${#_ck_rows[@]}"
}
_ck_proc_start() {
    local ticks newest=0 hundredths
    (($# == 1)) && [[ -n $1 ]] || { _ck_no "usage: proc_start PROGRAM" || return 1; }
    _ck_processes "$1"
    ((${#_ck_starts[@]})) || { _ck_no "no process runs $1" || return 1; }
    for ticks in "${_ck_starts[@]}"; do ((ticks <= newest)) || newest=$ticks; done
    # A tick is a hundredth of a second.
    hundredths=$((_ck_booted + newest))
    printf '%s.%s\n' "${hundredths:0:-2}" "${hundredths: -2}"
}
# When the machine was booted, in hundredths of a second; once, so that two answers can be compared.
_ck_set_booted() {
    local now up
    now=$(date +%s.%N)
    read -r up _ </proc/uptime
    up=${up/./} now=${now/./}
    _ck_booted=$((10#${now:0:-7} - 10#$up))
}
[[ ! -r /proc/uptime ]] || _ck_set_booted

# --- running a script ---

# Read whole before it runs, so that a command that reads its input does not read the script.
_ck_reader="IFS= read -r -d '' script; exec </dev/null; eval \"\$script\""

_ck_payload() { # SCRIPT WORD
    # shellcheck disable=SC2016 # expanded by the shell that runs the script
    printf '_ck_word=%s\nreport() { printf "\\n%%s %%s\\n" "$_ck_word" "$*" >&9; }\n' "$2"
    cat -- "${BASH_SOURCE[0]}" "$1"
    printf '\nreport END\n'
}
_ck_main() {
    local file word line results names=() finished=0 failed=0 reward=0 mark name dropped
    dropped=" ${*:3} "
    if (($# == 0)) || [[ ! -f $1 || ($# -gt 1 && $2 != --without) ]]; then
        printf 'usage: bash checks.sh SCRIPT [--without NAME...]\n' >&2
        return 2
    fi
    file=$(mktemp) && word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n') || return 2
    exec {results}<>"$file"
    rm -f -- "$file"
    mark=CHECK_SCRIPT=${word:0:16}
    word=${word:16}
    _ck_payload "$1" "$word" |
        env "$mark" timeout -k 5 "$_ck_script_seconds" bash -c "$_ck_reader" 9>"/dev/fd/$results" 1>&2 {results}>&-
    _ck_end_marked "$mark"
    while IFS= read -r line; do
        [[ $line == "$word "* ]] || continue
        line=${line#* }
        name=${line#* }
        name=${name%%:*}
        if [[ $line != END && $dropped == *" $name "* ]]; then
            printf 'DROP %s\n' "$name"
            names+=("$name")
            continue
        fi
        case $line in
        END) finished=1 ;;
        PASS\ *) printf '%s\n' "$line" && names+=("${line#PASS }") ;;
        *) printf '%s\n' "$line" && failed=1 ;;
        esac
    done <"/dev/fd/$results"
    exec {results}>&-
    if ((!finished)); then
        printf 'FAIL script: it stopped before its last line\n'
    elif ((!failed && ${#names[@]} == 0)); then
        printf 'FAIL script: it has no check\n'
    elif [[ -n $(printf '%s\n' "${names[@]}" | sort | uniq -d) ]]; then
        printf 'FAIL script: two checks have the same name\n'
    elif ((!failed)); then
        reward=1
    fi
    [[ ! -d /logs/verifier ]] || printf '%s\n' "$reward" >/logs/verifier/reward.txt
    ((reward))
}
if [[ -n ${BASH_SOURCE[0]-} && ${BASH_SOURCE[0]} == "$0" ]]; then
    _ck_main "$@"
    exit
fi
