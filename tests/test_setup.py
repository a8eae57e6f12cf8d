"""The set-up scripts, on a pretended machine: a PATH that holds only what the test puts there."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@dataclass
class Machine:
    """A folder that stands for a machine: commands in bin/, Java homes in jvm/, what was installed in log."""

    root: Path
    user: int = 1000

    def __post_init__(self) -> None:
        self.command("id", f"echo {self.user}")
        for name in ("env", "mkdir", "cat", "chmod"):
            real = shutil.which(name)
            assert real is not None
            (self.root / "bin" / name).symlink_to(real)

    def command(self, name: str, script: str, folder: str = "bin") -> None:
        path = self.root / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def java(self, home: str, version: str, on_path: bool = False) -> str:
        """A Java that answers as the real one does, and its home."""
        found = str(self.root / home)
        script = f"echo '    java.home = {found}'\necho '    java.specification.version = {version}'"
        self.command("java", f"({script}) >&2", "bin" if on_path else f"{home}/bin")
        return found

    def package_manager(self, name: str, home: str = "jvm/java-17", works: str = "*") -> None:
        """A package manager that notes its arguments, and has a Java in packages that match a pattern."""
        java = f"{self.root}/{home}/bin/java"
        self.command(
            name,
            f"""echo "{name} $*" >> {self.root}/log
case "$*" in
    update) exit 0 ;;
    *{works}) ;;
    *) exit 100 ;;
esac
mkdir -p {self.root}/{home}/bin
cat > {java} <<'EOF'
#!/bin/sh
echo '    java.home = {self.root}/{home}' >&2
echo '    java.specification.version = 17' >&2
EOF
chmod 755 {java}""",
        )

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", str(SCRIPTS / script)],
            env={"PATH": f"{self.root}/bin", "HEADGATE_JVM_HOMES": f"{self.root}/jvm/*"} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def installed(self) -> list[str]:
        log = self.root / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine_of_root(tmp_path: Path) -> Machine:
    return Machine(tmp_path, user=0)


def test_java_home_comes_first(machine: Machine) -> None:
    machine.java("other", "17", on_path=True)
    given = machine.java("given", "21")
    assert machine.run("java.sh", JAVA_HOME=given).stdout == f"{given}\n"


def test_java_on_path(machine: Machine) -> None:
    home = machine.java("somewhere else", "17", on_path=True)
    assert machine.run("java.sh", JAVA_HOME="/nowhere").stdout == f"{home}\n"


def test_java_in_a_usual_place(machine: Machine) -> None:
    machine.java("jvm/java-11", "11")
    home = machine.java("jvm/java-25", "25")
    assert machine.run("java.sh").stdout == f"{home}\n"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_too_old_is_as_good_as_none(machine: Machine, version: str) -> None:
    answer = machine.run("java.sh", JAVA_HOME=machine.java("given", version))
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "Java 17 or newer" in answer.stderr


def test_root_installs_without_asking(machine_of_root: Machine) -> None:
    machine_of_root.java("old", "11", on_path=True)
    machine_of_root.package_manager("apt-get")
    assert machine_of_root.run("java.sh").stdout == f"{machine_of_root.root}/jvm/java-17\n"
    assert machine_of_root.installed == [
        "apt-get update",
        "apt-get install -y --no-install-recommends openjdk-17-jre-headless",
    ]
    machine_of_root.run("java.sh")
    assert len(machine_of_root.installed) == 2, "what is there is not installed again"


def test_a_newer_release_where_the_first_is_not_offered(machine_of_root: Machine) -> None:
    machine_of_root.package_manager("dnf", works="java-21-openjdk-headless")
    assert machine_of_root.run("java.sh").returncode == 0
    assert machine_of_root.installed[-1] == "dnf install -y java-21-openjdk-headless"


def test_sudo_without_a_password_will_do(machine: Machine) -> None:
    machine.package_manager("apk")
    machine.command("sudo", 'shift; case "$1" in true) exit 0 ;; esac; exec "$@"')
    assert machine.run("java.sh").returncode == 0
    assert machine.installed == ["apk add --no-cache openjdk17-jre-headless"]


def test_homebrew_needs_no_rights(machine: Machine) -> None:
    machine.package_manager("brew")
    assert machine.run("java.sh").returncode == 0
    assert machine.installed == ["brew install openjdk@17"]


@pytest.mark.parametrize(
    ("manager", "advice"),
    [
        ("apt-get", "sudo apt-get update && sudo apt-get install -y openjdk-17-jre-headless"),
        ("dnf", "sudo dnf install -y java-17-openjdk-headless"),
        ("apk", "sudo apk add openjdk17-jre-headless"),
        (None, "set JAVA_HOME"),
    ],
)
def test_without_rights_one_line_says_what_to_type(machine: Machine, manager: str | None, advice: str) -> None:
    machine.command("sudo", "exit 1")
    if manager is not None:
        machine.package_manager(manager)
    answer = machine.run("java.sh")
    assert (answer.returncode, answer.stdout, machine.installed) == (1, "", [])
    assert answer.stderr.count("\n") == 1
    assert answer.stderr.rstrip().endswith(advice)


def test_python_that_only_seems_to_be_there_is_passed_over(machine: Machine) -> None:
    machine.command("python3.11", "exit 127")
    machine.command("python3.12", "exit 0")
    assert machine.run("python.sh").stdout == f"{machine.root}/bin/python3.12\n"


def test_no_python_is_one_clear_line(machine: Machine) -> None:
    answer = machine.run("python.sh")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.count("\n") == 1
    assert "Python 3.11 or newer" in answer.stderr
