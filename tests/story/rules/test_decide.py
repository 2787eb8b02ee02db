"""What rules allow, and what they must leave to a person."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cases import check_each
from tests.conftest import missing_part
from tests.story.rules.fuzz import SHELLS, Playground, find_escapes
from tests.story.rules.sample_rules import TOP, sample_request, sample_rules
from whyfor.story.rules.bash_parser import bash_parser, load_parser, parser_libraries
from whyfor.story.rules.decide import ALLOW, CommandRequest, DecisionRule, judge_command, rule_fault
from whyfor.story.rules.never import named_never

HERE = Path(__file__).parent


def verdict(command: str, *rules: DecisionRule, top: str = TOP) -> str:
    used = list(rules) or sample_rules()
    return judge_command(sample_request(command, top), used, bash_parser()).answer


def rule(run: str, decision: str = "allow", project: str = "*", until: str = "") -> DecisionRule:
    return DecisionRule("r1", project, [], run.split(), [], decision, until)


def test_no_line_of_the_bypass_corpus_is_allowed() -> None:
    lines = (HERE / "bypass.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    assert len(cases) >= 1800

    def check(command: str) -> None:
        assert verdict(command) != ALLOW

    check_each([(f"{kind} {command!r}", command) for kind, command in cases], check)
    check_each([("long", "echo " + "a" * 9000), ("longer", "git " + "log " * 3000)], check)


def test_nearly_all_everyday_commands_are_allowed() -> None:
    lines = (HERE / "useful.txt").read_text().splitlines()
    asked = [line for line in lines if verdict(line) != ALLOW]
    assert len(asked) <= 0.05 * len(lines), asked


def test_what_is_allowed_changes_nothing_when_it_runs_in_real_shells(tmp_path: Path) -> None:
    shells = tuple(name for name in SHELLS if shutil.which(name.rstrip("+")))
    if len(shells) < len(SHELLS):
        missing_part(f"RULES NOT TESTED IN {set(SHELLS) - set(shells)}")
    playground = Playground(tmp_path / "fuzz")
    for escape in (
        "git log; touch PWN",
        "make test deploy",
        "cd bare && git status",
        "cd nested && git status",
    ):
        playground.run(escape, shells[0])
        assert playground.is_changed(), "the playground notices an escape"
        (playground.project / "PWN").unlink()
        playground.before = playground.state()
    escapes, _ = find_escapes(playground, seed=15, count=90, shells=shells)
    assert escapes == []


def test_deny_comes_before_ask_before_allow_and_never_before_allow() -> None:
    deny, ask, allow = (rule("make test", decision) for decision in ("deny", "ask", "allow"))
    assert verdict("make test", allow, ask, deny) == "deny"
    assert verdict("make test", allow, ask) == "ask"
    assert verdict("make test", allow) == "allow"
    assert verdict("make test && ls", allow) == "abstain"
    assert verdict("git push", rule("git push")) == "never"
    assert verdict("git push", rule("git push", "deny")) == "deny"
    assert verdict("make test && git push", allow, rule("git push *", "deny")) == "deny"


def test_what_a_rule_denies_is_denied_wherever_it_stands() -> None:
    refused = rule("git push", "deny")
    for line in (
        'git push origin "$BRANCH"',
        "for b in a b; do git push origin $b; done",
        "x=1 git push > log.txt",
        'echo "$(git push)"',
        "if true\nthen git push\nfi",
        "make test && git push --force &",
    ):
        assert verdict(line, refused) == "deny", line
    for line in ('echo "git push $x"', "grep 'git push' $x", "git pull $x", 'git "$x" push'):
        assert verdict(line, refused) == "abstain", line


def test_a_star_in_a_denying_rule_stands_for_any_words() -> None:
    refused = rule("rclone sync * preview:*", "deny")
    assert verdict("rclone sync build/ preview:charts --checksum", refused) == "deny"
    assert verdict("rclone sync -v build/ preview:charts", refused) == "deny"
    assert verdict("rclone copy build/ preview:charts", refused) == "never"


def test_a_rule_counts_in_its_project_for_its_agents_until_its_day() -> None:
    here = "github.com/acme/shop"
    assert verdict("make test", rule("make test", project=here)) == "allow"
    assert verdict("make test", rule("make test", project="github.com/acme/other")) == "abstain"
    assert verdict("make test", rule("make test", until="2026-11-18")) == "allow"
    assert verdict("make test", rule("make test", until="2026-11-17")) == "abstain"
    other = DecisionRule("r1", "*", ["codex"], ["make", "test"], [], "allow", "")
    assert verdict("make test", other) == "abstain"
    unknown = CommandRequest("make test", "claude", "", TOP, TOP, "2026-11-18")
    rules = [rule("make test", project="")]
    assert judge_command(unknown, rules, bash_parser()).answer == "abstain"


def test_links_that_lead_out_of_the_project_are_asked(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    outside.mkdir()
    (project / "link").symlink_to(outside)
    (project / "src" / "up").symlink_to("../..")

    def answer(command: str) -> str:
        request = sample_request(command, str(project))
        return judge_command(request, sample_rules(), bash_parser()).answer

    assert answer("ls src") == "allow"
    assert answer("ls link") == "abstain"
    assert answer("cat src/up/x") == "abstain"
    assert answer("cd link && npm test") == "abstain"
    assert answer("cd src && ls up") == "abstain"

    (project / "src" / "left").symlink_to("../../outside")
    assert answer("ls s*") == "allow"
    assert answer("ls l*") == answer("cat src/l*/x") == answer("ls src/?p") == "abstain"
    assert answer("cat sr*/u[p]/x") == "abstain"
    assert answer("git -C link log") == "never"


def test_a_word_that_may_become_several_is_asked_where_one_is_meant() -> None:
    for command in ("uniq -f 1*", "git branch --sort v*", "cd s*", "head -n 1*", "jq .e* a.json"):
        assert verdict(command) == "abstain", command
    assert verdict("make test -j deploy") == "abstain", "make takes only a number for its -j"
    assert verdict("head -n 1 a*") == verdict("make test -j 8") == "allow"


def test_code_of_others_is_not_run_as_the_projects_own() -> None:
    for command in ("cd node_modules/x && npm test", "pytest vendor/x", "(cd .venv && make test)"):
        assert verdict(command) == "abstain", command
    assert verdict("grep -rn main node_modules/x") == "allow"


def test_words_for_a_program_of_which_nothing_is_known_are_plain() -> None:
    assert verdict("./checks app") == "allow"
    for word in ("'$(x)'", "'a;b'", "+x", "@x", "X=1", ".git/config", "'a b|c'"):
        assert verdict(f"./checks {word}") == "abstain", word


def test_a_pattern_is_no_path() -> None:
    assert verdict("grep -rn /api/v1 src") == verdict("rg '../x' src") == "allow"
    assert verdict("grep -rn -e x /etc") == verdict("rg --files /etc") == "abstain"


def test_programs_that_do_anything_are_in_a_class_that_no_rule_can_allow() -> None:
    for line in ("/usr/bin/time ls", "git -p -c a=b log", "npm --prefix x publish", "bun add x"):
        assert verdict(line, rule(line)) == "never", line
    for line in ("git stash", "git checkout a.py", "/lib/ld-linux-x86-64.so.2 ./x", "bun x y"):
        assert verdict(line, rule(line)) == "never", line
    for line in ("tar xf a.tar", "tar -zxf a.tar", "unzip a.zip", "patch -p1"):
        assert verdict(line, rule(line)) == "never", line
    for line in ("git stash list", "git checkout -b x", "node --version", "tar tf a.tar"):
        assert verdict(line, rule(line)) == "allow", line


def test_git_is_asked_where_it_would_take_another_repository(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for folder in ("src", ".git", "vendor/x.git/objects", "nested/.git"):
        (project / folder).mkdir(parents=True)
    (project / "vendor/x.git/HEAD").write_text("ref: refs/heads/main\n")

    def answer(command: str, cwd: str = "") -> str:
        request = sample_request(command, str(project))
        request.cwd = f"{project}/{cwd}".rstrip("/")
        request.folders = [request.cwd]
        return judge_command(request, sample_rules(), bash_parser()).answer

    assert answer("git status") == answer("git status", "src") == "allow"
    assert answer("cd src && git status") == answer("cd vendor && git status") == "allow"
    assert answer("cd vendor/x.git && git status") == "abstain"
    assert answer("git status", "vendor/x.git") == answer("git log", "nested") == "abstain"
    assert answer("cd nested && git log") == answer("cd nested; ls; git log") == "abstain"
    assert answer("cd nested && ls") == "allow"


def test_rules_that_would_allow_too_much_are_refused() -> None:
    wide = ("python3", "bash", "git", "npm run", "make", "git push", "rm", "python3 -c x", "ls *")
    check_each([(run, run.split()) for run in wide], _is_faulty)
    fine = ("python3 -m pytest", "python3 tools/check.py", "make test", "npm run lint", "wc")
    for run in fine:
        assert rule_fault(run.split(), "allow") == ""
    assert rule_fault(["git", "push", "*"], "deny") == ""


def _is_faulty(run: list[str]) -> None:
    assert rule_fault(run, "allow")


def test_options_that_act_cannot_be_added_by_a_rule() -> None:
    greedy = DecisionRule("r", "*", [], ["git", "log"], ["--output *", "--graph"], "allow", "")
    assert verdict("git log --graph", greedy) == "allow"
    assert verdict("git log --output=PWN", greedy) == "abstain"
    assert verdict("git log --output PWN", greedy) == "abstain"


def test_a_line_that_cannot_be_judged_still_names_what_no_rule_can_allow() -> None:
    assert named_never('sh -c "$(cat x)"') == "sh"
    assert named_never("for f in *; do rm $f; done") == "rm"
    assert named_never("X=1 /usr/bin/sudo ls <<E\nx\nE") == "sudo"
    assert named_never("ls *") == ""


def test_the_parser_loads_from_its_libraries_alone() -> None:
    parser = load_parser(parser_libraries())
    assert judge_command(sample_request("git log"), sample_rules(), parser).answer == "allow"
    assert judge_command(sample_request("git log $(x)"), sample_rules(), parser).answer == "abstain"
