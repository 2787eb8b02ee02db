"""What no rule can allow, whatever it says. Imports nothing: hooks run it."""


def _words(text: str) -> "frozenset[str]":
    return frozenset(text.split())


_DELETES = _words("rm rmdir unlink shred srm dd wipefs truncate fdisk parted mkswap")
_RIGHTS = _words(
    "sudo su doas pkexec runuser chmod chown chgrp setfacl chattr passwd usermod useradd userdel "
    "visudo umask chsh"
)
_PROCESSES = _words(
    "kill pkill killall xkill systemctl service launchctl reboot shutdown halt poweroff crontab at "
    "batch fuser"
)
_NETWORK = _words(
    "curl wget ssh scp sftp rsync rclone nc ncat netcat telnet ftp lftp socat aria2c ssh-keygen "
    "ssh-add ssh-copy-id"
)
_CLOUDS = _words(
    "twine docker podman docker-compose kubectl helm terraform tofu pulumi aws gcloud gsutil az "
    "flyctl fly vercel netlify heroku ansible ansible-playbook goreleaser doctl wrangler firebase"
)
_DATABASES = _words(
    "psql mysql mariadb sqlite3 mongo mongosh redis-cli dropdb createdb pg_restore pg_dump "
    "mysqladmin mysqldump clickhouse-client duckdb"
)
_INSTALLERS = _words(
    "apt apt-get aptitude dpkg rpm yum dnf zypper pacman apk brew port snap flatpak pip pip3 pipx "
    "npx bunx uvx easy_install corepack nvm rustup conda mamba"
)
_WRAPPERS = _words(
    "env xargs eval exec command builtin source timeout nohup watch nice ionice setsid stdbuf "
    "strace ltrace gdb parallel entr script expect tmux screen flock chroot unshare nsenter "
    "busybox trap alias unalias export set unset shopt enable hash declare typeset local read "
    "printf test [ let mapfile readarray getopts emulate zmodload autoload zcompile sched bindkey "
    "setopt unsetopt claude codex gemini copilot opencode aider amp qwen cursor-agent"
)
SHELLS = _words("sh bash dash zsh ksh mksh ash fish csh tcsh nu pwsh powershell cmd")
INTERPRETERS = _words(
    "python python2 python3 node nodejs deno bun perl ruby php lua tclsh Rscript osascript julia "
    "groovy scala irb ghci ipython"
)
_SCRIPTED = _words("awk gawk mawk nawk m4 ed ex vi vim nvim emacs")  # code is their first argument
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
)
# By program: words that make it one of the classes.
_SUBCOMMANDS: dict[str, dict[str, "frozenset[str]"]] = {
    "git": {
        "it changes history or a remote": _words(
            "push clean restore config filter-branch filter-repo update-ref reflog replace "
            "fast-import prune gc send-pack remote-https daemon credential hook bisect submodule "
            "difftool mergetool instaweb send-email request-pull archive bundle clone fetch pull"
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
    ("git", "switch"): _words("-f --force --discard-changes -C"),
    ("git", "stash"): _words("drop clear pop push save apply branch"),
    ("git", "tag"): _words("-d --delete -f --force"),
    ("git", "worktree"): _words("remove prune move add"),
    ("git", "remote"): _words("add remove rm rename set-url set-head prune update"),
    ("git", "commit"): _words("--amend --no-verify -n"),
    ("git", "rebase"): _words("-x --exec -i --interactive"),
    ("git", "notes"): _words("add remove prune edit copy append merge"),
}
_FIND_ACTS = _words("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls")
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
    if name in SHELLS or name in INTERPRETERS or _is_versioned(name):
        return _interpreter_reason(argv)
    if name == "find" and not _FIND_ACTS.isdisjoint(argv):
        return "it deletes, writes or runs something for each file"
    if name == "git" and len(argv) > 1 and argv[1].partition("=")[0] in _GIT_OPTIONS:
        return "it changes what git runs, or where"
    return _subcommand_reason(name, argv)


def _subcommand_reason(name: str, argv: list[str]) -> "str | None":
    word, rest = _subcommand(argv)
    for reason, words in _SUBCOMMANDS.get(name, {}).items():
        if word in words:
            return reason
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


def _is_versioned(name: str) -> bool:
    return name.rstrip("0123456789.") in INTERPRETERS


def _interpreter_reason(argv: list[str]) -> "str | None":
    if len(argv) < 2:
        return "it runs code from what it reads"
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
