"""What no rule can allow, whatever it says. Imports nothing: hooks run it."""


def _words(text: str) -> "frozenset[str]":
    return frozenset(text.split())


_DELETES = _words(
    "rm rmdir unlink shred srm dd wipefs blkdiscard truncate fallocate fdisk sfdisk gdisk sgdisk "
    "cfdisk parted mkswap trash trash-put gio"
)
_RIGHTS = _words(
    "sudo su doas pkexec runuser sudoedit sg newgrp login chmod chown chgrp setfacl setfattr "
    "chattr chcon setcap passwd chpasswd gpasswd usermod useradd userdel adduser deluser groupadd "
    "groupdel visudo vipw umask chsh chfn update-alternatives security"
)
_PROCESSES = _words(
    "kill pkill killall killall5 skill xkill systemctl service launchctl initctl rc-service sv "
    "supervisorctl pm2 forever foreman honcho reboot shutdown halt poweroff init telinit crontab "
    "at batch atrm fuser mount umount losetup swapon swapoff modprobe insmod rmmod sysctl iptables "
    "ip6tables nft ufw ip ifconfig hostnamectl timedatectl loginctl systemd-run dbus-send busctl "
    "gdbus open xdg-open start explorer defaults diskutil"
)
_NETWORK = _words(
    "curl wget wget2 ssh autossh sshpass sshfs scp sftp rsync rclone nc ncat netcat telnet ftp "
    "lftp tftp socat aria2c axel http https httpie xh websocat ngrok cloudflared nmap dig nslookup "
    "host ssh-keygen ssh-add ssh-agent ssh-copy-id ssh-keyscan mail mailx sendmail mutt"
)
_CLOUDS = _words(
    "twine docker podman buildah skopeo nerdctl ctr crictl docker-compose podman-compose kubectl "
    "oc k9s minikube k3s kind eksctl argocd flux istioctl helm helmfile terraform terragrunt tofu "
    "pulumi packer vagrant nomad consul vault aws aws-vault sam cdk eb gcloud gsutil bq az azd "
    "flyctl fly vercel netlify heroku railway render surge serverless sls amplify supabase ansible "
    "ansible-playbook goreleaser doctl hcloud linode-cli ibmcloud oci cf wrangler firebase op pass "
    "doppler chamber infisical s3cmd s5cmd mc"
)
_DATABASES = _words(
    "psql pgcli pg_ctl initdb pg_restore pg_dump pg_dumpall createdb dropdb createuser dropuser "
    "vacuumdb reindexdb mysql mariadb mycli mysqladmin mysqldump mysqlimport sqlite sqlite3 "
    "litecli sqlcmd sqlplus mongo mongosh mongoimport mongoexport mongodump mongorestore redis-cli "
    "valkey-cli keydb-cli cqlsh influx etcdctl clickhouse clickhouse-client duckdb usql snowsql "
    "flyway liquibase alembic"
)
_INSTALLERS = _words(
    "apt apt-get aptitude dpkg rpm yum dnf zypper pacman yay paru apk emerge brew port snap "
    "flatpak nix nix-env nix-shell nix-channel guix winget choco scoop pip pip3 pipx pipenv pdm "
    "rye pixi npx bunx uvx easy_install corepack nvm fnm volta n asdf mise pyenv rbenv rustup sdk "
    "ghcup opam cpan cpanm luarocks conda mamba micromamba tlmgr vcpkg conan installer"
)
_WRAPPERS = _words(
    "env xargs gxargs eval exec command builtin source time timeout gtimeout nohup watch viddy "
    "nice renice ionice chrt taskset numactl prlimit setsid setarch linux32 linux64 i386 x86_64 "
    "arch stdbuf unbuffer chronic rlwrap caffeinate strace ltrace gdb lldb rr perf valgrind "
    "hyperfine parallel sem entr watchexec nodemon reflex concurrently run-parts script expect "
    "tmux screen byobu zellij dtach abduco flock lockfile chroot unshare nsenter setpriv firejail "
    "bwrap proot fakeroot fakechroot faketime xvfb-run dbus-run-session direnv dotenv busybox "
    "toybox trap alias unalias export set unset shopt enable hash declare typeset local read "
    "printf test [ let mapfile readarray getopts emulate zmodload autoload zcompile sched bindkey "
    "setopt unsetopt zle compdef functions private readonly float integer ulimit disown bg fg "
    "pushd popd dirs wait exit logout return break continue shift claude codex gemini copilot "
    "opencode aider amp qwen cursor-agent goose droid crush kilo kimi vibe"
)
SHELLS = _words(
    "sh bash rbash dash zsh rzsh ksh ksh93 mksh lksh oksh loksh pdksh ash yash posh fish csh tcsh "
    "rc es scsh osh ysh nu elvish xonsh ion pwsh powershell cmd"
)
INTERPRETERS = _words(
    "python python2 python3 pypy pypy3 pythonw micropython node nodejs deno bun tsx ts-node "
    "babel-node qjs perl perl5 raku ruby jruby irb php lua luajit tclsh wish Rscript R octave "
    "osascript julia groovy scala ghci runghc runhaskell ipython jshell jrunscript guile racket "
    "scheme sbcl clisp ecl clojure clj bb elixir iex erl escript swift kotlin kotlinc gnuplot "
    "crystal nim dart"
)
# Code is their first argument, or they run what is typed or named in a file.
_SCRIPTED = _words(
    "awk gawk mawk nawk original-awk m4 ed red ex vi view vim vimdiff rvim rview gvim nvim emacs "
    "emacsclient nano pico micro joe jed mcedit hx helix kak code subl dc gsed ssed psed mlr"
)
_UNPACKERS = _words(
    "unzip gunzip bunzip2 unxz 7z 7za 7zr 7zz unrar unar cpio pax ar jar patch quilt unsquashfs"
)
_CODE_OPTIONS = _words("-c -e -E -p -r -i -l --eval --print --exec --command --require --import -")
_CLASSES = (
    (_DELETES, "it deletes"),
    (_RIGHTS, "it changes rights"),
    (_PROCESSES, "it ends or starts other processes"),
    (_NETWORK, "it uses the network"),
    (_CLOUDS, "it publishes or changes a service"),
    (_DATABASES, "it talks to a database"),
    (_INSTALLERS, "it installs software"),
    (_WRAPPERS, "it runs or reads what another command is"),
    (_SCRIPTED, "it runs code in its arguments"),
    (_UNPACKERS, "it writes files that the line does not name"),
)
# By program: words that make it one of the classes.
_SUBCOMMANDS: dict[str, dict[str, "frozenset[str]"]] = {
    "git": {
        "it changes history or a remote": _words(
            "push clean restore config filter-branch filter-repo update-ref symbolic-ref reflog "
            "replace fast-import prune prune-packed gc repack maintenance send-pack receive-pack "
            "upload-pack fetch-pack http-push http-fetch remote-http remote-https remote-ext "
            "remote-fd ls-remote daemon shell credential hook bisect submodule difftool mergetool "
            "instaweb web--browse gui citool send-email imap-send request-pull archive bundle "
            "clone fetch pull rebase rm read-tree checkout-index update-index "
            "unpack-objects index-pack svn p4 lfs sparse-checkout init "
            "init-db am apply quiltimport"
        ),
    },
    "npm": {
        "it publishes or changes a service": _words(
            "publish unpublish deprecate dist-tag owner access token login logout adduser hook org "
            "team star"
        ),
        "it installs software": _words(
            "install i in ins add ci install-test it update up upgrade uninstall un remove rm r "
            "link ln exec x init create rebuild rb dedupe prune audit config c set cache pkg "
            "version edit explore"
        ),
    },
    "cargo": {
        "it publishes or changes a service": _words("publish yank login logout owner"),
        "it installs software": _words("install uninstall add remove update run init new"),
    },
    "go": {"it installs software": _words("install get run generate clean env mod work tool")},
    "uv": {"it installs software": _words("pip add remove sync tool run lock publish venv python")},
    "poetry": {"it installs software": _words("add install remove update publish run lock self")},
    "gem": {"it installs software": _words("install uninstall push update yank")},
    "bundle": {"it installs software": _words("install update exec add config")},
    "composer": {"it installs software": _words("install require update remove exec")},
    "gh": {
        "it publishes or changes a service": _words(
            "release repo secret api auth workflow ssh-key gpg-key variable codespace extension "
            "alias config gist ruleset cache label"
        )
    },
    "mvn": {"it publishes or changes a service": _words("deploy release:perform install")},
    "gradle": {"it publishes or changes a service": _words("publish upload")},
    "whyfor": {
        "it changes what is answered or kept for you": _words(
            "rules init uninstall forget pause resume config restore import rebuild login share "
            "sync run"
        )
    },
    "hatch": {"it publishes or changes a service": _words("publish run shell env")},
}
_SUBCOMMANDS["yarn"] = _SUBCOMMANDS["pnpm"] = _SUBCOMMANDS["bun"] = {
    **_SUBCOMMANDS["npm"],
    "it runs or reads what another command is": _words("dlx exec node env"),
}
# By program and subcommand: options that make it one of the classes.
_OPTIONS: dict[tuple[str, str], "frozenset[str]"] = {
    ("git", "reset"): _words("--hard --merge --keep"),
    ("git", "branch"): _words(
        "-D -d -M -m -C -c -f --delete --force --move --copy --set-upstream-to -u"
    ),
    ("git", "checkout"): _words("-- . -f --force -B --theirs --ours --merge -m -p --patch"),
    ("git", "mv"): _words("-f --force"),
    ("git", "switch"): _words("-f --force --discard-changes -C"),
    ("git", "stash"): _words("drop clear pop push save apply branch"),
    ("git", "tag"): _words("-d --delete -f --force"),
    ("git", "worktree"): _words("remove prune move add"),
    ("git", "remote"): _words("add remove rm rename set-url set-head prune update"),
    ("git", "commit"): _words("--amend --no-verify -n"),
    ("git", "notes"): _words("add remove prune edit copy append merge"),
}
_FIND_ACTS = _words("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls")
_STASH_LOOKS = _words("list show create")
_GIT_OPTIONS = _words("-c -C --git-dir --work-tree --exec-path --config-env --namespace")
# Files that decide what runs later: names of folders or files, or ends of paths.
_PROTECTED = _words(
    ".git .ssh .gnupg .aws .claude .codex .gemini .copilot .cursor .opencode .husky .githooks "
    ".bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .zlogin .envrc .npmrc "
    ".netrc .pypirc .gitconfig .gitattributes .gitmodules .gitlab-ci.yml .circleci .travis.yml "
    "Jenkinsfile .pre-commit-config.yaml lefthook.yml .mcp.json .vscode whyfor rules.toml"
)
_PROTECTED_PAIRS = (".github/workflows", ".github/hooks", ".github/actions", ".config/whyfor")


def never_reason(argv: list[str]) -> "str | None":
    """Return why no rule can allow a command; None if one may."""
    name = argv[0].rpartition("/")[2]
    for names, reason in _CLASSES:
        if name in names or name.startswith("mkfs"):
            return reason
    if name.startswith(("ld-linux", "ld-musl", "ld.so")):
        return "it runs or reads what another command is"
    if name in SHELLS or name in INTERPRETERS or _is_versioned(name):
        return _interpreter_reason(argv) or _subcommand_reason(name, argv)
    if name == "find" and not _FIND_ACTS.isdisjoint(argv):
        return "it deletes, writes or runs something for each file"
    if name in ("tar", "bsdtar", "gtar") and _unpacks(argv):
        return "it writes files that the line does not name"
    if name == "git" and _changes_git(argv):
        return "it changes what git runs, or where"
    return _subcommand_reason(name, argv)


def _unpacks(argv: list[str]) -> bool:
    """Return whether tar takes files out of an archive, which may be hooks or settings."""
    # The first word holds options without a dash, too.
    short = [word for word in argv[1:] if word == argv[1] or word.startswith("-")]
    letters = "".join(word for word in short if not word.startswith("--"))
    return "x" in letters or any(word.startswith(("--ext", "--get")) for word in argv)


def _changes_git(argv: list[str]) -> bool:
    """Return whether one of the options before git's subcommand changes what it runs, or where."""
    for word in argv[1:]:
        if not word.startswith("-"):
            return False
        if word.partition("=")[0] in _GIT_OPTIONS or word[:2] in ("-c", "-C"):
            return True
    return False


def _subcommand_reason(name: str, argv: list[str]) -> "str | None":
    word, rest = _subcommand(argv)
    for reason, words in _SUBCOMMANDS.get(name, {}).items():
        if not words.isdisjoint(_seeming_subcommands(argv)):
            return reason
    if name == "git" and word == "stash" and _subcommand([name, *rest])[0] not in _STASH_LOOKS:
        return "it changes history or throws work away"
    if name == "git" and word == "checkout" and "-b" not in rest:
        return "it may throw work away"  # of a file; that it names a branch cannot be seen
    found = _OPTIONS.get((name, word))
    if found is not None and not found.isdisjoint(part.partition("=")[0] for part in rest):
        return "it changes history or throws work away"
    return None


def _subcommand(argv: list[str]) -> "tuple[str, list[str]]":
    """Return the first word that is no option, and what stands behind it."""
    for place, word in enumerate(argv[1:], 1):
        if not word.startswith("-"):
            return word, argv[place + 1 :]
    return "", []


def _seeming_subcommands(argv: list[str]) -> list[str]:
    """Return the words that may be the subcommand: one behind an option may be its value."""
    found = []
    before = argv[0]
    for word in argv[1:]:
        if not word.startswith("-"):
            found.append(word)
            if not before.startswith("-"):
                break
        before = word
    return found


def _is_versioned(name: str) -> bool:
    return name.rstrip("0123456789.") in INTERPRETERS


def _interpreter_reason(argv: list[str]) -> "str | None":
    if len(argv) < 2:
        return "it runs code from what it reads"
    if argv[1:] == ["--version"]:
        return None
    if argv[1:3] in (["-m", "pip"], ["-m", "venv"], ["-m", "ensurepip"], ["-m", "site"]):
        return "it installs software"
    if argv[1] == "-m" and len(argv) > 2:
        return None  # a module: a rule must name it
    if argv[1].startswith("-") or not _CODE_OPTIONS.isdisjoint(argv[1:2]):
        return "it runs code in its arguments"
    return None  # a script: a rule must name it


def is_protected(path: str) -> bool:
    """Return whether a path is of a file that decides what runs later."""
    parts = path.strip("/").split("/")
    if not _PROTECTED.isdisjoint(parts):
        return True
    return any(pair in path for pair in _PROTECTED_PAIRS)


def named_never(line: str) -> str:
    """Return the first program of a class that no rule can allow in a line that cannot be judged,
    by the words that seem to begin its commands; empty if there is none."""
    for words in seeming_commands(line):
        if never_reason(words) is not None:
            return words[0].rpartition("/")[2]
    return ""


def seeming_commands(line: str) -> list[list[str]]:
    """Return the words of what seem to be the commands of a line that cannot be judged: only to be
    shown to a person."""
    line = line.replace("\\\n", " ")
    for mark in ";&|()`{}\n":
        line = line.replace(mark, "\n")
    found = []
    for piece in line.replace('"', " ").replace("'", " ").split("\n"):
        words = [word for word in piece.split() if "=" not in word or word.startswith("-")]
        while words and words[0] in _BEFORE_COMMANDS:
            del words[0]
        if words:
            found.append(words)
    return found


_BEFORE_COMMANDS = _words("then do else ! if while until time $")
