# The part of the launcher that is the same on every machine; `setup` writes it behind lines that set the recorded paths.
# Every variable has the prefix mw_, because assigning to a name that the host exports would change the environment of
# the server. PROGRAM_ stands for the prefix of this program's variables. Nothing here reads stdin: it belongs to the server.

# Sets mw_number to a version as one number: v24.1.0 is 24001000.
mw_to_number() {
  mw_text=${1#v}
  mw_text=${mw_text%%[!0-9.]*}
  mw_major=${mw_text%%.*}
  mw_text=${mw_text#"$mw_major"}
  mw_text=${mw_text#.}
  mw_minor=${mw_text%%.*}
  mw_text=${mw_text#"$mw_minor"}
  mw_text=${mw_text#.}
  mw_patch=${mw_text%%.*}
  mw_number=$((${mw_major:-0} * 1000000 + ${mw_minor:-0} * 1000 + ${mw_patch:-0}))
}

# Reads the range of the package: ">=22.18", or ">=22.18 <27".
mw_read_range() {
  mw_range='' mw_least=0 mw_below=999999999
  [ -r "$mw_range_file" ] && IFS= read -r mw_range <"$mw_range_file"
  for mw_word in $mw_range; do
    case $mw_word in
      '>='*) mw_to_number "${mw_word#>=}" && mw_least=$mw_number ;;
      '<'*) mw_to_number "${mw_word#<}" && mw_below=$mw_number ;;
    esac
  done
}

mw_is_in_range() {
  mw_to_number "$1"
  [ "$mw_number" -ge "$mw_least" ] && [ "$mw_number" -lt "$mw_below" ]
}

# Prints where a file really lies; fails for one that cannot be run.
mw_real_file() {
  mw_file=$1 mw_links=0
  while [ -L "$mw_file" ] && [ "$mw_links" -lt 20 ]; do
    mw_target=$(readlink "$mw_file") || return 1
    case $mw_target in
      /*) mw_file=$mw_target ;;
      *) mw_file=${mw_file%/*}/$mw_target ;;
    esac
    mw_links=$((mw_links + 1))
  done
  [ -f "$mw_file" ] && [ -x "$mw_file" ] || return 1
  mw_folder=$(cd -P "${mw_file%/*}/" 2>/dev/null && pwd -P) || return 1
  printf '%s/%s\n' "${mw_folder%/}" "${mw_file##*/}"
}

# True for a file or folder of this user or of root that nobody else may write.
mw_is_trusted() {
  [ -n "$(find "$1" -prune \( -user "$mw_user" -o -user 0 \) ! -perm -020 ! -perm -002 -print 2>/dev/null)" ]
}

# Remembers the Node of a folder when it is newer than the best one so far. A shim is a script, or a link to a program of
# another name.
mw_consider() {
  case $1 in /*) ;; *) return 0 ;; esac
  [ -e "$1/node" ] && mw_real=$(mw_real_file "$1/node") || return 0
  case $mw_real in */shims/*) return 0 ;; esac
  case ${mw_real##*/} in node | nodejs) ;; *) return 0 ;; esac
  mw_holder=$(cd -P "$1/" 2>/dev/null && pwd -P) || return 0
  mw_is_trusted "$mw_holder" && mw_is_trusted "${mw_real%/*}/" && mw_is_trusted "$mw_real" || return 0
  [ "$(head -c 2 "$mw_real" 2>/dev/null | tr -d '\000')" != '#!' ] || return 0
  mw_found=$("$mw_real" --version </dev/null 2>/dev/null) || return 0
  case $mw_found in v[0-9]*) ;; *) return 0 ;; esac
  if mw_is_in_range "$mw_found" && [ "$mw_number" -gt "$mw_best" ]; then
    mw_best=$mw_number mw_newest=$mw_real
  fi
}

# Prints the newest installed Node in the range, or nothing: on the PATH, and where nvm, fnm, Volta, asdf and Homebrew
# install it. Runs in a subshell, so that the PATH of the server stays as it is.
mw_newest_node() (
  mw_path=${PATH-} mw_best=0 mw_newest=''
  PATH=/usr/bin:/bin:/usr/local/bin
  unset CDPATH
  mw_user=$(id -u) || return 0
  set -f
  IFS=:
  for mw_entry in $mw_path; do mw_consider "$mw_entry"; done
  unset IFS
  set +f
  mw_own=${HOME:-/nonexistent}
  for mw_entry in \
    "${NVM_DIR:-$mw_own/.nvm}"/versions/node/*/bin \
    "${FNM_DIR:-$mw_own/.local/share/fnm}"/node-versions/*/installation/bin \
    "$mw_own/.fnm"/node-versions/*/installation/bin \
    "$mw_own/Library/Application Support/fnm"/node-versions/*/installation/bin \
    "${VOLTA_HOME:-$mw_own/.volta}"/tools/image/node/*/bin \
    "${ASDF_DATA_DIR:-$mw_own/.asdf}"/installs/nodejs/*/bin \
    /opt/homebrew/Cellar/node*/*/bin \
    /usr/local/Cellar/node*/*/bin \
    /home/linuxbrew/.linuxbrew/Cellar/node*/*/bin \
    "$mw_own/.linuxbrew"/Cellar/node*/*/bin; do
    mw_consider "$mw_entry"
  done
  printf '%s\n' "$mw_newest"
)

# Sets mw_node to a Node that fits: the recorded one, else the newest. Fails where there is none.
mw_find_node() {
  mw_recorded=$mw_node
  mw_read_range
  [ -f "$mw_node" ] && [ -x "$mw_node" ] && mw_is_in_range "$mw_node_version" && return 0
  mw_node=$(mw_newest_node)
  [ -n "$mw_node" ]
}

# Only for the package, never for the original command: a variable that the entry or the host sets stays.
mw_set_variables() {
  if [ -n "$mw_home" ] && [ -z "${PROGRAM_HOME-}" ]; then
    PROGRAM_HOME=$mw_home
    export PROGRAM_HOME
  fi
  if [ -n "${PROGRAM_ENTRY_STORE-}" ]; then
    PROGRAM_STORE=$PROGRAM_ENTRY_STORE
    export PROGRAM_STORE
    unset PROGRAM_ENTRY_STORE
  fi
}

# Sets mw_original to the number of words in front of the original command, and mw_is_limited where the entry denies tools.
mw_read_words() {
  mw_original=0 mw_is_limited='' mw_at=0
  [ "${1-}" = wrap ] || return 0
  for mw_word; do
    mw_at=$((mw_at + 1))
    case $mw_word in
      --)
        [ "$#" -gt "$mw_at" ] && mw_original=$mw_at
        return 0
        ;;
      --allow | --allow=* | --deny | --deny=*) mw_is_limited=yes ;;
    esac
  done
}

if [ -f "$mw_package" ]; then
  if mw_find_node; then
    mw_set_variables
    exec "$mw_node" "$mw_package" "$@"
  fi
  mw_why="no Node.js $mw_range was found on this machine, and $mw_recorded is gone or does not fit"
  mw_cure="Install Node.js $mw_range, then run: $mw_name setup"
else
  if [ -n "$mw_npx" ] && mw_find_node && [ -f "${mw_node%/*}/npx" ]; then
    mw_set_variables
    PATH=${mw_node%/*}${PATH:+:$PATH}
    export PATH
    exec "$mw_node" "${mw_node%/*}/npx" -y "$mw_npx" "$@"
  fi
  mw_why="$mw_package is gone"
  mw_cure="Install $mw_name again, then run: $mw_name setup"
fi

mw_read_words "$@"
if [ "$mw_original" -eq 0 ]; then
  printf '%s\n' "$mw_name: $mw_why, so this server cannot start. $mw_cure" >&2
  exit 70
fi
shift "$mw_original"
if [ -n "$mw_is_limited" ]; then
  printf '%s\n' "$mw_name: $mw_why. ${1##*/} was not started without it, because the entry limits its tools with --allow or --deny. $mw_cure" >&2
  exit 70
fi
printf '%s\n' "$mw_name: $mw_why, so ${1##*/} runs without $mw_title. $mw_cure" >&2
unset PROGRAM_ENTRY_STORE
exec "$@"
