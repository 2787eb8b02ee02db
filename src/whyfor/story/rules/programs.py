"""Which options of which programs only look, count or choose: what is not listed is asked.

Imports nothing: hooks run it. A table is found by the longest beginning of a command that it is
listed for. `flags` take no value; `values` take one, behind them or behind `=`; `inline` only
behind `=`; of `counts`, the word behind them is their value only if it is a number. `texts` are
those of the values that are never paths. `acts` write, run or fetch something: no rule can add
them.
"""

ANY = "any"  # what may stand behind the options: paths in the project, revisions, words
NONE = "none"  # nothing but what the rule itself names
ONE = "one"  # one, and that is a path: without it, or with `-`, another folder is meant
FORMAT = "format"  # a format, which begins with `+`
SED = "sed"  # one script that only prints lines, then paths
JQ = "jq"  # one filter that reads only its input, then paths
PATTERN = "pattern"  # one pattern, which is no path, then paths
WORDS = "words"  # words that are no paths
TEXT = "text"  # words that are only printed, also such as `---`


class ProgramTable:
    __slots__ = (
        "acts",
        "arguments",
        "counts",
        "flags",
        "inline",
        "numbers",
        "reads",
        "texts",
        "values",
    )

    def __init__(  # noqa: PLR0913 - columns of a table; most are named where they are given
        self,
        flags: str = "",
        values: str = "",
        inline: str = "",
        acts: str = "",
        arguments: str = ANY,
        reads: bool = True,
        counts: str = "",
        texts: str = "",
    ) -> None:
        self.flags = frozenset(flags.split())
        self.values = frozenset(values.split())
        self.inline = frozenset(inline.split())
        self.acts = frozenset(acts.split())
        self.counts = frozenset(counts.split())
        self.texts = frozenset(texts.split())
        self.arguments = arguments
        self.reads = reads  # it changes nothing by itself, so that it may read any file here
        self.numbers = "-NUM" in self.flags


_DIFF = (
    "-p -u --patch -s --no-patch --raw --stat --numstat --shortstat --dirstat --summary "
    "--name-only --name-status --check --full-index --binary -z -R --text -a -w -b "
    "--ignore-all-space --ignore-space-change --ignore-blank-lines --minimal --patience "
    "--histogram --cached --staged --merge-base --quiet --exit-code --no-ext-diff --no-textconv "
    "--no-color --no-renames --no-prefix --word-diff --find-renames -M -C --cc -c -m "
)
_DIFF_VALUES = "-U --unified --diff-filter -S -G --abbrev -l "
_TEXTS = "-S -G --since --after --until --before --author --committer --grep --format --pretty"
_DIFF_INLINE = "--color --stat --word-diff --diff-algorithm --submodule --word-diff-regex "
_LOG = (
    "--oneline --graph --all --decorate --no-decorate --merges --no-merges --first-parent "
    "--reverse --follow --abbrev-commit --no-abbrev-commit --relative-date --branches --tags "
    "--remotes --date-order --topo-order --left-right --cherry-pick --boundary --full-history "
    "--no-walk --pickaxe-all -i -E -F --all-match --invert-grep -NUM "
)
_LOG_VALUES = (
    "-n --max-count --skip --since --after --until --before --author --committer --grep "
    "--format --pretty --date -L "
)
# The last runs gpg, which makes files of its own.
_GIT_ACTS = (
    "--output --ext-diff --textconv -O --open-files-in-pager --exec --upload-pack --show-signature"
)
_PYTEST = ProgramTable(
    "-q -qq -v -vv -vvv -x -s -l --quiet --verbose --exitfirst --lf --last-failed --ff --nf --sw "
    "--stepwise --co --collect-only --no-header --no-summary --showlocals --durations-min "
    "--strict-markers --tb --version --no-cov",
    "-k -m --maxfail --durations --tb -n --timeout --color --deselect --ignore -r",
    acts=(
        "-p -c -o --rootdir --confcutdir --basetemp --override-ini --config-file --junitxml "
        "--junit-xml --pdb --pdbcls --import-mode --log-file --debug --cov-report --resultlog "
        "--pyargs --pastebin --cache-clear --trace --cov-config --html --result-log"
    ),
    reads=False,
)
_NPM = ProgramTable(
    "-s --silent --if-present -q --quiet",
    acts=(
        "--prefix -C --script-shell --node-options --userconfig --globalconfig --workspace -w "
        "--workspaces --ignore-scripts --shell --call -c -g --global --registry --cache"
    ),
    arguments=NONE,
    reads=False,
)
_CARGO = ProgramTable(
    "-q --quiet -v --verbose --release --all --workspace --all-targets --all-features "
    "--no-default-features --lib --bins --tests --examples --doc --no-run --no-fail-fast --locked "
    "--offline --frozen",
    "-p --package --test --bin --example --features -j --jobs --profile",
    acts="--config --manifest-path --target-dir -Z -C --out-dir --fix --target",
    reads=False,
)
_GO = ProgramTable(
    "-v -race -short -failfast -cover -json -x -benchmem",
    "-run -count -timeout -parallel -bench -benchtime -cpu -tags -skip -shuffle",
    acts=(
        "-exec -toolexec -o -overlay -modfile -C -c -coverprofile -cpuprofile -memprofile "
        "-trace -outputdir -ldflags -gcflags -asmflags -vettool -compiler -mod"
    ),
    reads=False,
)
_RUFF = ProgramTable(
    "-q --quiet -v --verbose --statistics --no-fix --diff --no-cache --isolated --preview "
    "--check --show-files --show-settings",
    "--select --ignore --extend-select --output-format --target-version --line-length",
    acts="--config -o --output-file --cache-dir --add-noqa --fix-only",
    reads=False,
)
_GREP = ProgramTable(
    "-r -R -n -i -l -L -w -c -v -h -H -o -q -s -x -E -F -P -I -a -z --recursive --count "
    "--line-number --ignore-case --files-with-matches --only-matching --invert-match --quiet "
    "--extended-regexp --fixed-strings --perl-regexp --word-regexp --no-filename -NUM",
    "-e -A -B -C -m --include --exclude --exclude-dir --max-count --context --after-context "
    "--before-context --regexp",
    inline="--color --binary-files",
    acts="-f --file",
    arguments=PATTERN,
    texts="-e --regexp --include --exclude --exclude-dir",
)
_COUNT = "-NUM -q -v -z --quiet --verbose --zero-terminated"

TABLES: dict[tuple[str, ...], ProgramTable] = {
    # git: what looks
    ("git", "status"): ProgramTable(
        "-s --short -b --branch --porcelain --long -v --verbose -u --ignored --no-renames -z "
        "--show-stash --ahead-behind -uno -uall -unormal",
        inline="--porcelain --untracked-files --ignored --column",
        acts=_GIT_ACTS,
    ),
    ("git", "log"): ProgramTable(
        _LOG + _DIFF,
        _LOG_VALUES + _DIFF_VALUES,
        _DIFF_INLINE + "--decorate",
        _GIT_ACTS,
        texts=_TEXTS,
    ),
    ("git", "show"): ProgramTable(
        _LOG + _DIFF,
        _LOG_VALUES + _DIFF_VALUES,
        _DIFF_INLINE + "--decorate",
        _GIT_ACTS,
        texts=_TEXTS,
    ),
    ("git", "diff"): ProgramTable(
        _DIFF, _DIFF_VALUES, _DIFF_INLINE, _GIT_ACTS + " --no-index --tool", texts=_TEXTS
    ),
    ("git", "blame"): ProgramTable("-w -s -e -l -t -M -C --porcelain", "-L", acts=_GIT_ACTS),
    ("git", "grep"): ProgramTable(
        "-n -i -l -w -c -E -F -P -h -H -v -o -q --count --name-only --line-number --ignore-case "
        "--cached --untracked --heading --break -NUM",
        "-e -A -B -C --max-depth",
        acts=_GIT_ACTS,
        arguments=PATTERN,
        texts="-e",
    ),
    ("git", "ls-files"): ProgramTable(
        "-c -d -m -o -s -z -t --cached --deleted --modified --others --stage --exclude-standard",
        acts=_GIT_ACTS,
    ),
    ("git", "ls-tree"): ProgramTable("-r -t -l -d -z --name-only --full-tree", acts=_GIT_ACTS),
    ("git", "rev-parse"): ProgramTable(
        "--show-toplevel --abbrev-ref --short --git-dir --is-inside-work-tree --verify HEAD -q "
        "--git-common-dir --show-prefix --symbolic-full-name",
        inline="--short --abbrev-ref",
        acts=_GIT_ACTS,
    ),
    ("git", "rev-list"): ProgramTable(
        "--count --all --first-parent --no-merges --merges --reverse -NUM",
        "-n --max-count --since --until --author",
        acts=_GIT_ACTS,
    ),
    ("git", "describe"): ProgramTable("--tags --always --dirty --all --long", acts=_GIT_ACTS),
    ("git", "shortlog"): ProgramTable("-s -n -e -sn -sne --no-merges", "--since", acts=_GIT_ACTS),
    ("git", "merge-base"): ProgramTable("--is-ancestor --all", acts=_GIT_ACTS),
    ("git", "cat-file"): ProgramTable("-t -s -p -e", acts=_GIT_ACTS + " --batch --filters"),
    ("git", "branch"): ProgramTable(
        "-a -r -v -vv --all --remotes --list --show-current --no-color",
        "--sort --format",
        acts=_GIT_ACTS,
        arguments=NONE,
    ),
    ("git", "tag"): ProgramTable("-l --list -n", "--sort --format", acts=_GIT_ACTS, arguments=NONE),
    ("git", "remote"): ProgramTable("-v --verbose", acts=_GIT_ACTS, arguments=NONE),
    ("git", "stash", "list"): ProgramTable("--stat -p -NUM", acts=_GIT_ACTS, arguments=NONE),
    ("git", "worktree", "list"): ProgramTable("--porcelain -v", acts=_GIT_ACTS, arguments=NONE),
    # git: what people allow although it changes something
    ("git", "add"): ProgramTable(
        "-A --all -u --update -v -n --dry-run -N --intent-to-add", acts=_GIT_ACTS, reads=False
    ),
    ("git", "commit"): ProgramTable(
        "-a --all -q --quiet -v --verbose --allow-empty -am",
        "-m --message",
        texts="-m --message",
        acts=_GIT_ACTS + " -F --file --template -t -C -c --author --gpg-sign -S --fixup -n "
        "--no-verify --amend",
        reads=False,
    ),
    # files: what looks
    ("ls",): ProgramTable(
        "-a -A -l -h -t -r -R -S -d -F -i -s -1 -G -o -g -n -p --all --human-readable --recursive "
        "--reverse",
        inline="--color --sort --time",
    ),
    ("cat",): ProgramTable("-n -b -s -A -e -t -v -E -T"),
    ("head",): ProgramTable(_COUNT, "-n -c --lines --bytes"),
    ("tail",): ProgramTable(_COUNT, "-n -c --lines --bytes", acts="-f -F --follow --pid"),
    ("wc",): ProgramTable("-l -w -c -m -L --lines --words --bytes", acts="--files0-from"),
    ("nl",): ProgramTable("-ba", "-b -w"),
    ("grep",): _GREP,
    ("egrep",): _GREP,
    ("fgrep",): _GREP,
    ("rg",): ProgramTable(
        "-n -i -l -w -c -v -o -q -s -S -F -P -U -a -L -H -I -N -. --count --files --hidden "
        "--line-number --no-ignore --files-with-matches --ignore-case --smart-case --no-heading "
        "--heading --multiline --only-matching --trim --json --stats --fixed-strings -uu -u",
        "-e -A -B -C -g -t -T -m --glob --type --type-not --max-count --max-depth --context --sort "
        "--regexp -M",
        inline="--color",
        arguments=PATTERN,
        texts="-e --regexp -g --glob",
        acts="--pre --pre-glob --hostname-bin -z --search-zip -f --file --ignore-file --config",
    ),
    ("find",): ProgramTable(
        "-not -o -a -or -and -print -print0 -prune -empty -depth -xdev -mount -L -H -P -readable "
        "-executable -writable -true -false -nouser -daystart ( )",
        "-name -iname -path -ipath -wholename -type -maxdepth -mindepth -size -mtime -mmin -ctime "
        "-cmin -newer -perm -user -regex -iregex -regextype -samefile -inum -links",
        acts="-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from -f",
        texts="-path -ipath -wholename -regex -iregex -name -iname",
    ),
    ("fd",): ProgramTable(
        "-H -I -a -l -p -s -i -g -0 --hidden --no-ignore",
        "-e -t -d -E --extension --type --max-depth --exclude",
        acts="-x -X --exec --exec-batch",
    ),
    ("sort",): ProgramTable(
        "-n -r -u -f -b -d -h -V -g -M -s -c -z --reverse --unique --numeric-sort",
        "-k -t --key --field-separator",
        texts="-t --field-separator",
        acts="-o --output --compress-program -T --temporary-directory --files0-from -S",
    ),
    ("uniq",): ProgramTable("-c -d -u -i", "-f -s -w", arguments=NONE),
    ("cut",): ProgramTable(
        "-s --complement",
        "-d -f -c -b --delimiter --fields --characters",
        texts="-d --delimiter",
    ),
    ("tr",): ProgramTable("-d -s -c -C -t", arguments=WORDS),
    ("rev",): ProgramTable(),
    ("tac",): ProgramTable(),
    ("comm",): ProgramTable("-1 -2 -3 -12 -13 -23 -i"),
    ("diff",): ProgramTable(
        "-u -r -q -w -b -B -i -y -N -a -s --brief --recursive --unified",
        "-U --context",
        acts="--to-file --from-file -l --paginate --horizon-lines",
    ),
    ("cmp",): ProgramTable("-s -l"),
    ("stat",): ProgramTable("-L", "-c -f --format --printf", texts="-c --format --printf"),
    ("file",): ProgramTable("-b -i -L --mime-type --brief", acts="-C --compile -m -f -z -Z"),
    ("du",): ProgramTable("-s -h -a -c -k -m -b", "-d --max-depth"),
    ("df",): ProgramTable("-h -k -m -T -i"),
    ("tree",): ProgramTable("-a -d -f -i -h -s", "-L -I -P", acts="-o -R -H --fromfile"),
    ("basename",): ProgramTable("-a", "-s", arguments=WORDS),
    ("dirname",): ProgramTable(arguments=WORDS),
    ("realpath",): ProgramTable("-e -m -s"),
    ("md5sum",): ProgramTable(acts="-c --check"),
    ("sha256sum",): ProgramTable(acts="-c --check"),
    ("jq",): ProgramTable(
        "-r -c -e -s -S -M -j -n --raw-output --compact-output --slurp --sort-keys",
        acts="-f --from-file -L --slurpfile --rawfile --argfile --seq --stream",
        arguments=JQ,
    ),
    ("sed",): ProgramTable("-n -E", acts="-i -e -f -s --in-place --expression", arguments=SED),
    # words and places
    ("echo",): ProgramTable("-n", arguments=TEXT),
    ("pwd",): ProgramTable("-P -L", arguments=NONE),
    ("date",): ProgramTable("-u --utc -I", acts="-s --set -f --file -r -d", arguments=FORMAT),
    ("which",): ProgramTable("-a"),
    ("whoami",): ProgramTable(arguments=NONE),
    ("uname",): ProgramTable("-a -s -r -m -n -v -p", arguments=NONE),
    ("true",): ProgramTable(arguments=NONE),
    ("false",): ProgramTable(arguments=NONE),
    ("cd",): ProgramTable(arguments=ONE),
    # what runs the project's own code
    ("npm", "test"): _NPM,
    ("npm", "run"): _NPM,
    ("npm", "ls"): ProgramTable("-a --all --json --long", "--depth", arguments=NONE),
    ("pnpm", "test"): _NPM,
    ("pnpm", "run"): _NPM,
    ("yarn", "test"): _NPM,
    ("yarn", "run"): _NPM,
    ("bun", "run"): _NPM,
    ("bun", "test"): ProgramTable(
        "--bail --only --todo",
        "-t --test-name-pattern --timeout",
        acts="--preload -r --update-snapshots -u --coverage-dir --cwd --config -c --watch",
        reads=False,
    ),
    ("make",): ProgramTable(
        "-s -k -B -n -q --silent --quiet --keep-going --dry-run",
        counts="-j --jobs",
        acts="-f --file --makefile -C --directory -E --eval -e --environment-overrides -I -W -o -i",
        arguments=NONE,
        reads=False,
    ),
    ("just",): ProgramTable(acts="-f --justfile --set -c --command", arguments=NONE, reads=False),
    ("pytest",): _PYTEST,
    ("python", "-m", "pytest"): _PYTEST,
    ("python3", "-m", "pytest"): _PYTEST,
    ("cargo", "test"): _CARGO,
    ("cargo", "check"): _CARGO,
    ("cargo", "build"): _CARGO,
    ("cargo", "clippy"): _CARGO,
    ("go", "test"): _GO,
    ("go", "vet"): _GO,
    ("go", "build"): _GO,
    ("ruff", "check"): _RUFF,
    ("ruff", "format"): _RUFF,
    ("mypy",): ProgramTable(
        "--strict --pretty --no-color-output --no-error-summary",
        "-p -m --python-version",
        acts="--config-file --python-executable --cache-dir --install-types --html-report --pdb",
        reads=False,
    ),
    ("tsc",): ProgramTable(
        "--noEmit -b --build --pretty",
        acts="-p --project --outDir --outFile --init -w --watch --plugins --generateTrace",
        arguments=NONE,
        reads=False,
    ),
    ("eslint",): ProgramTable(
        "--quiet --no-color --cache",
        "--ext --max-warnings",
        acts="-c --config --rulesdir --resolve-plugins-relative-to --plugin --parser -o "
        "--output-file -f --format --fix-type --cache-location --init --env-info",
        reads=False,
    ),
}
_LONGEST_KEY = max(map(len, TABLES))
# Programs of which a rule must name at least so many words: what they do stands behind their name.
NAMED_PARTS = {key[0]: len(key) for key in TABLES if len(key) > 1} | {
    "make": 2,
    "tar": 2,
    "just": 2,
    "python": 2,
    "python3": 2,
    "npm": 2,
}
# A rule names the script, too.
RUNNERS = frozenset((("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run")))


def find_table(argv: list[str]) -> "tuple[int, ProgramTable] | None":
    """Return how many words of a command its table is about, and the table; None if it has none."""
    for length in range(min(_LONGEST_KEY, len(argv)), 0, -1):
        table = TABLES.get(tuple(argv[:length]))
        if table is not None:
            return length, table
    return None
