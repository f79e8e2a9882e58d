"""What is cut out of a recording, and what must stay as it was for the replay to be true."""

from __future__ import annotations

import io
import itertools
import json
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from ncheck.cli.examine import say
from ncheck.cli.main import main
from ncheck.fleet.recording import load, save
from ncheck.history.entry import entry_of
from ncheck.history.notify import changes_in, message_of
from ncheck.history.remember import remembered
from ncheck.history.ticket import KnownOfNode, ticket_files
from ncheck.model.evidence import Cause, Evidence, JsonValue
from ncheck.model.finding import Finding, Severity
from ncheck.model.report import Report
from ncheck.observer import Silent
from ncheck.pipeline import judge_again
from ncheck.read.text import read_text
from ncheck.redact import REDACTED, redact, redact_record, redact_value, secret_name
from ncheck.report import show
from ncheck.report.json import as_json
from ncheck.report.progress import PlainLines
from ncheck.settings import FORMATS, Settings

FIXTURES = Path(__file__).parents[2] / "fixtures"

CUT = {
    "HF_TOKEN=hf_abc": "HF_TOKEN=<redacted>",
    "export DB_PASSWORD=two words\nPATH=/bin": "export DB_PASSWORD=<redacted>\nPATH=/bin",
    "A=1\0AWS_SECRET_ACCESS_KEY=x y\0B=2": "A=1\0AWS_SECRET_ACCESS_KEY=<redacted>\0B=2",
    "mpirun -x WANDB_API_KEY=abc -np 2": "mpirun -x WANDB_API_KEY=<redacted> -np 2",
    "train.py --token abc --lr 1": "train.py --token <redacted> --lr 1",
    "train.py --api-key=abc --lr 1": "train.py --api-key=<redacted> --lr 1",
    "run password='two words' next": "run password=<redacted> next",
    '{"secret_key": "a\\"b", "n": 1}': '{"secret_key": "<redacted>", "n": 1}',
    "{'token': 'abc'}": "{'token': '<redacted>'}",
    '{"password": 12345, "n": 1}': '{"password": "<redacted>", "n": 1}',
    '{"clientSecret":"abc"}': '{"clientSecret":"<redacted>"}',
    "password: hunter two\nuser: me": "password: <redacted>\nuser: me",
    "Authorization: Basic dXNlcjpwYXNz": "Authorization: <redacted>",
    '-H "authorization: token abc" x': '-H "authorization: <redacted>" x',
    "said: bearer eyJhbGciOiJIUzI1NiJ9.e30.x_y": "said: bearer <redacted>",
    "https://user:p%40ss@host/x": "https://user:<redacted>@host/x",
    "socks5://:pw@proxy:1080": "socks5://:<redacted>@proxy:1080",
    "https://abcdef@host/x.git": "https://<redacted>@host/x.git",
    "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\nz": "a\n<redacted>\nz",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE": "<redacted>",
    "seen ghp_" + "a1" * 18 + " there": "seen <redacted> there",
    "seen AKIA" + "A1" * 8: "seen <redacted>",
    "PGPASSWORD=x": "PGPASSWORD=<redacted>",
    "AUTHOR\u0131ZATION: Basic dXNlcjpwYXNz": "AUTHOR\u0131ZATION: <redacted>",
    "docker\tlogin -u me -p abc": "docker\tlogin -u me -p <redacted>",
    "http\0-a\0me:abc\0GET": "http\0-a\0me:<redacted>\0GET",
    "MYSQL_PWD=x": "MYSQL_PWD=<redacted>",
    "SSHPASS=x": "SSHPASS=<redacted>",
    "DB_PASS=x": "DB_PASS=<redacted>",
    "GOOGLE_APPLICATION_CREDENTIALS=/k.json": "GOOGLE_APPLICATION_CREDENTIALS=<redacted>",
}

A40, JWT, B64 = "a1B2" * 10, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl", "c2VjcmV0c2VjcmV0" * 4

# Kinds of secrets, each as it is met: the secret is gone, and what stands around it is not.
KINDS = {
    "AWS key id": ("id ASIA" + "A1" * 8 + " used", "id <redacted> used"),
    "AWS credentials file": (f"aws_secret_access_key = {A40}\nr = x", "aws_secret_access_key = <redacted>\nr = x"),
    "AWS session token": (f"aws_session_token={B64}", "aws_session_token=<redacted>"),
    "AWS command line": (f"aws configure set my.secret_key {A40}", "aws configure set my.secret_key <redacted>"),
    "presigned URL": (f"https://b.s3/o?X-Amz-Signature={A40}&x=1", "https://b.s3/o?X-Amz-Signature=<redacted>&x=1"),
    "GCP API key": ("key AIza" + "a1B2_" * 7 + " ok", "key <redacted> ok"),
    "GCP OAuth token": (f"ya29.{A40} ok", "<redacted> ok"),
    "GCP service account": (
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----\\n", "client_id": "1"}',
        '{"private_key": "<redacted>\\n", "client_id": "1"}',
    ),
    "GCP client secret": (f"GOCSPX-{A40}", "<redacted>"),
    "Azure storage": (
        f"AccountName=data;AccountKey={B64};EndpointSuffix=x",
        "AccountName=data;AccountKey=<redacted>;EndpointSuffix=x",
    ),
    "Azure SAS": ("https://x.blob/c?sv=2022-11-02&sig=abc%3D&se=1", "https://x.blob/c?sv=2022-11-02&sig=<redacted>&se=1"),
    "Azure service principal": (f"AZURE_CLIENT_SECRET={A40}", "AZURE_CLIENT_SECRET=<redacted>"),
    "Azure option": (f"az storage --account-key {B64} ls", "az storage --account-key <redacted> ls"),
    "GitHub": (f"x github_pat_{A40} y", "x <redacted> y"),
    "GitLab": (f"x glpat-{A40} y", "x <redacted> y"),
    "GitLab header": ("curl -H 'PRIVATE-TOKEN: abc' u", "curl -H 'PRIVATE-TOKEN: <redacted>' u"),
    "Hugging Face": (f"login hf_{A40}", "login <redacted>"),
    "OpenAI": (f"use sk-{A40} now", "use <redacted> now"),
    "OpenAI project": (f"use sk-proj-{A40} now", "use <redacted> now"),
    "Anthropic": (f"use sk-ant-api03-{A40} now", "use <redacted> now"),
    "W&B variable": (f"WANDB_API_KEY={A40}", "WANDB_API_KEY=<redacted>"),
    "W&B login": (f"wandb login --relogin {A40}", "wandb login --relogin <redacted>"),
    "Slack token": ("xoxb-1234-5678-abcdef", "<redacted>"),
    "Slack webhook": ("https://hooks.slack.com/services/T0/B0/abc x", "https://hooks.slack.com/services/<redacted> x"),
    "Discord webhook": ("https://discord.com/api/webhooks/1/abc x", "https://discord.com/api/webhooks/<redacted> x"),
    "NGC": (f"nvapi-{A40} x", "<redacted> x"),
    "NGC variable": ("NGC_CLI_API_KEY=abc", "NGC_CLI_API_KEY=<redacted>"),
    "npm": (f"npm_{A40}", "<redacted>"),
    "npmrc": ("//registry.npmjs.org/:_authToken=abc", "//registry.npmjs.org/:_authToken=<redacted>"),
    "PyPI": (f"pypi-AgE{A40}", "<redacted>"),
    "Stripe": (f"sk_live_{A40}", "<redacted>"),
    "Vault": (f"hvs.{A40} x", "<redacted> x"),
    "Vault header": ("X-Vault-Token: abc", "X-Vault-Token: <redacted>"),
    "Databricks": ("dapi" + "0a" * 16, "<redacted>"),
    "Grafana": (f"glsa_{A40}", "<redacted>"),
    "SendGrid": (f"SG.{A40}.{A40}", "<redacted>"),
    "Telegram": ("12345678:AA" + "a1B" * 11, "<redacted>"),
    "Tailscale": (f"tskey-auth-{A40}", "<redacted>"),
    "age": ("AGE-SECRET-KEY-1" + "QZ" * 20, "<redacted>"),
    "JWT": (f"got {JWT} ok", "got <redacted> ok"),
    "SLURM_JWT": (f"SLURM_JWT={JWT}", "SLURM_JWT=<redacted>"),
    "X-SLURM-USER-TOKEN": ("X-SLURM-USER-TOKEN: abc", "X-SLURM-USER-TOKEN: <redacted>"),
    "kube client key": (f"    client-key-data: {B64}\n  user: x", "    client-key-data: <redacted>\n  user: x"),
    "kube token": ("    token: abcdef.0123456789abcdef", "    token: <redacted>"),
    "kube secret": ("secret x --from-literal=u=abc -n y", "secret x --from-literal=u=<redacted> -n y"),
    "kube registry secret": (f"  .dockerconfigjson: {B64}", "  .dockerconfigjson: <redacted>"),
    "kubeadm join": ("kubeadm join 10.0.0.1:6443 --token a.b --x", "kubeadm join 10.0.0.1:6443 --token <redacted> --x"),
    "docker config": ('{"auths": {"nvcr.io": {"auth": "dXNl"}}}', '{"auths": {"nvcr.io": {"auth": "<redacted>"}}}'),
    "docker login": ("docker login -u me -p abc nvcr.io", "docker login -u me -p <redacted> nvcr.io"),
    "mysql": ("mysql -h db -u root -pabc jobs", "mysql -h db -u root -p<redacted> jobs"),
    "mysqldump": ("mysqldump -p'my secret' jobs", "mysqldump -p<redacted> jobs"),
    "curl user": ("curl -s -u me:abc https://x", "curl -s -u me:<redacted> https://x"),
    "curl long user": ("curl --user 'me:abc' https://x", "curl --user 'me:<redacted>' https://x"),
    "wget": ("wget --http-password=abc https://x", "wget --http-password=<redacted> https://x"),
    "sshpass": ("sshpass -p abc ssh gpu01", "sshpass -p <redacted> ssh gpu01"),
    "sshpass, joined": ("sshpass -pabc ssh gpu01", "sshpass -p<redacted> ssh gpu01"),
    "redis": ("redis-cli -h x -a abc ping", "redis-cli -h x -a <redacted> ping"),
    "redis server": ("redis-server --requirepass abc --port 1", "redis-server --requirepass <redacted> --port 1"),
    "ldap": ("ldapsearch -x -w abc -b dc=x", "ldapsearch -x -w <redacted> -b dc=x"),
    "ipmitool": ("ipmitool -U a -P abc power", "ipmitool -U a -P <redacted> power"),
    "mongo": ("mongosh -u a -p abc db", "mongosh -u a -p <redacted> db"),
    "sudo by pipe": ("echo abc | sudo -S ls", "echo <redacted> | sudo -S ls"),
    "openssl": ("openssl rsa -passin pass:abc -in x", "openssl rsa -passin pass:<redacted> -in x"),
    "option with a space": ("train --password abc --lr 1", "train --password <redacted> --lr 1"),
    "option in quotes": ("train --password='a b' --lr 1", "train --password=<redacted> --lr 1"),
    "arguments of a process": ("mysql\0-pabc\0jobs", "mysql\0-p<redacted>\0jobs"),
    "cookie": ("Cookie: session=abc; x=y\nHost: h", "Cookie: <redacted>\nHost: h"),
    "set-cookie": ("Set-Cookie: session=abc; Path=/", "Set-Cookie: <redacted>"),
    "API key header": ("curl -H 'X-Api-Key: abc' u", "curl -H 'X-Api-Key: <redacted>' u"),
    "proxy authorization": ("Proxy-Authorization: Basic abc=", "Proxy-Authorization: <redacted>"),
    "git header": ("http.extraheader=AUTHORIZATION: basic abc=", "http.extraheader=AUTHORIZATION: <redacted>"),
    "proxy URL": ("http_proxy=http://me:abc@proxy:3128", "http_proxy=http://me:<redacted>@proxy:3128"),
    "database URL": ("postgresql://me:abc@db:5432/jobs", "postgresql://me:<redacted>@db:5432/jobs"),
    "redis URL": ("redis://:abc@head:6379", "redis://:<redacted>@head:6379"),
    "connection string": ("Server=db;User=me;Password=abc;Port=1", "Server=db;User=me;Password=<redacted>;Port=1"),
    "libpq": ("host=db user=me password=abc port=1", "host=db user=me password=<redacted> port=1"),
    "notebook": ("http://host:8888/?token=abc", "http://host:8888/?token=<redacted>"),
    "netrc": ("machine api.wandb.ai login user password abc", "machine api.wandb.ai login user password <redacted>"),
    "netrc in lines": ("machine x\n  login user\n  password abc\n", "machine x\n  login user\n  password <redacted>\n"),
    "pgpass": ("db:5432:jobs:me:abc\nx", "db:5432:jobs:me:<redacted>\nx"),
    "PGP key": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----\nz",
        "<redacted>\nz",
    ),
    "encrypted key": ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n-----END ENCRYPTED PRIVATE KEY-----", "<redacted>"),
    "PuTTY key": ("Private-Lines: 1\nAAAA\nPrivate-MAC: 0", "Private-Lines: 1\n<redacted>Private-MAC: 0"),
    "MUNGE credential": (f"got MUNGE:{B64}: ok", "got <redacted> ok"),
    "hash of a password": ("root:$6$salt$" + "a1/." * 20 + ":19000:0", "root:<redacted>:19000:0"),
    "WireGuard": (f"PrivateKey = {A40}=\nListenPort = 1", "PrivateKey = <redacted>\nListenPort = 1"),
    "Wi-Fi": ("psk=abc", "psk=<redacted>"),
    "MLflow": ("MLFLOW_TRACKING_PASSWORD=abc", "MLFLOW_TRACKING_PASSWORD=<redacted>"),
    "MinIO": ("MINIO_ROOT_PASSWORD=abc", "MINIO_ROOT_PASSWORD=<redacted>"),
    "setting that NCCL reports": (
        "n1:7:7 [0] NCCL INFO NCCL_FOO_TOKEN set by environment to abc.",
        "n1:7:7 [0] NCCL INFO NCCL_FOO_TOKEN set by environment to <redacted>",
    ),
    "setting in a log": ("wandb: api_key: local-abc and more", "wandb: api_key: <redacted> and more"),
    "token in a word": (f"keyhf_{A40}", "key<redacted>"),
    "token behind another": (f"xghp_{A40}_", "x<redacted>_"),
    "a database's variable": ("DB_PWD=abc", "DB_PWD=<redacted>"),
    "variable of a container": ("docker run --env=HF_TOKEN=abc img", "docker run --env=HF_TOKEN=<redacted> img"),
    "variable in quotes": ("kubectl run x --env='HF_TOKEN=abc' -n y", "kubectl run x --env='HF_TOKEN=<redacted>' -n y"),
    "variable of a step": ("srun --export=ALL,HF_TOKEN=abc,X=1 a", "srun --export=ALL,HF_TOKEN=<redacted>,X=1 a"),
    "pod spec": ('{"name": "HF_TOKEN", "value": "abc"}', '{"name": "HF_TOKEN", "value": "<redacted>"}'),
    "pod spec, value first": ('{"value":"abc","name":"HF_TOKEN"}', '{"value":"<redacted>","name":"HF_TOKEN"}'),
    "pod spec in YAML": (
        "- name: HF_TOKEN\n  value: abc\n- name: X\n  value: 1",
        "- name: HF_TOKEN\n  value: <redacted>\n- name: X\n  value: 1",
    ),
    "pod spec in Python": ("{'name': 'HF_TOKEN', 'value': 'abc'}", "{'name': 'HF_TOKEN', 'value': '<redacted>'}"),
    "words of a command": ("['x.py', '--api-key', 'abc', '-v']", "['x.py', '--api-key', '<redacted>', '-v']"),
    "words in JSON": ('["x.py","--api-key","abc"]', '["x.py","--api-key","<redacted>"]'),
    "words and a variable": ("['env', 'HF_TOKEN=abc', 'x']", "['env', 'HF_TOKEN=<redacted>', 'x']"),
    "JSON in JSON": ('{"a": "{\\"HF_TOKEN\\": \\"abc\\", \\"n\\": 1}"}',
                     '{"a": "{\\"HF_TOKEN\\": \\"<redacted>\\", \\"n\\": 1}"}'),
    "argument in a traceback": ("    connect(host, password = 'abc')", "    connect(host, password = <redacted>)"),
    "W&B prose": (f"wandb: logged in with key {'0a1b' * 10} now", "wandb: logged in with key <redacted> now"),
    "conda": ("from https://conda.x.org/t/ab-1234-abcd/chan", "from https://conda.x.org/t/<redacted>/chan"),
    "Teams": ("https://x.webhook.office.com/webhookb2/a@b/c/abc", "https://x.webhook.office.com/webhookb2/<redacted>"),
    "Telegram hook": ("https://api.telegram.org/bot123:abc/send", "https://api.telegram.org/bot<redacted>"),
    "Mattermost hook": ("https://chat.x.org/hooks/abc123abc x", "https://chat.x.org/hooks/<redacted> x"),
    "Docker Hub": (f"dckr_pat_{A40} x", "<redacted> x"),
    "AWS key id in a word": ("profileAKIA" + "A1" * 8 + "x", "profile<redacted>x"),
    "Artifactory": (f"AKCp{A40} x", "<redacted> x"),
    "Terraform": (f"0123456789wxyz.atlasv1.{A40}{A40} x", "<redacted> x"),
    "Twilio": ("SK" + "0a" * 16 + " x", "<redacted> x"),
    "etcd": ("etcdctl --user root:abc get x", "etcdctl --user root:<redacted> get x"),
    "prose": ("the password is: abc", "the password is: <redacted>"),
    "repr of lines": ("ValueError: 'a\\nHF_TOKEN=abc\\nX=1'", "ValueError: 'a\\nHF_TOKEN=<redacted>'"),
    "JWT in a repr": (f"ValueError: 'a\\n{JWT}\\nb'", "ValueError: 'a\\n<redacted>\\nb'"),
    "npm in a repr": (f"'a\\tnpm_{A40}'", "'a\\t<redacted>'"),
    "netrc in a repr": ("'machine x\\nlogin u\\npassword abc\\n'", "'machine x\\nlogin u\\npassword <redacted>\\n'"),
    "YAML in one line": ("env: {HF_TOKEN: abc, X: 1}", "env: {HF_TOKEN: <redacted>, X: 1}"),
    "variable in prose": ("error: HF_TOKEN: abc was refused", "error: HF_TOKEN: <redacted> was refused"),
}  # fmt: skip

KEPT = (
    "NCCL_IB_PKEY=0x8001\nPWD=/root\nOLDPWD=/tmp\nPATH=/usr/bin",
    "TOKENIZERS_PARALLELISM=false",
    "Permission denied (publickey,password).",
    "me@gpu01's password: ",
    "ssh-ed25519 SHA256:AbCdEf+/0123 host key",
    "Host key verification failed.",
    "\tNode GUID: 0x506b4b03005c2740\n\tBase lid: 3",
    "ssh://me@gpu01:10001/",
    "BYPASS=1 passed=3 monkey=2 PASSED: 4",
    '{"token": null, "password": "", "keys": ["a"]}',
    "SSH_PUBLIC_KEY=ssh-ed25519",
    "GPU0\t X \tNV18\tNV18\tPIX",
    "key: value",
    "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0",
    "NCCL INFO NCCL_IB_PKEY set by environment to 0x8001",
    "SyntaxError: unexpected token: x",
    "commit 5bd08434f41ff8ecbc1a675d85fdc0bebff34f1a",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "link/ether 52:54:00:12:34:56 brd ff:ff:ff:ff:ff:ff",
    "00:11:22:33:44:55",
    "2001:1234:5678:9abc:def0:1:2:3",
    "inet6 fe80::5054:ff:fe12:3456/64 scope link",
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5269b708-1234-5678-9abc-def012345678)",
    "node_guid: 506b:4b03:005c:2740\nsys_image_guid: 506b:4b03:005c:2740",
    "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\nNCCL_COMM_ID=10.0.0.1:1234\nNCCL_SOCKET_IFNAME=^docker0,lo",
    "NCCL version 2.21.5+cuda12.4 commit 0a1b2c3d",
    "libnccl2/unknown,now 2.27.7-1+cuda12.4 amd64 [installed]",
    "SSH_AUTH_SOCK=/tmp/ssh-abc/agent.1\nXAUTHORITY=/root/.Xauthority\nSSH_ASKPASS=/usr/bin/x",
    "docker run --user 1000:1000 -p 8080:80 -v /a:/b image",
    "ssh -p 10001 -o StrictHostKeyChecking=no me@gpu01 true",
    "mpirun -np 2 -x NCCL_DEBUG=INFO --mca btl_tcp_if_include 10.0.0.0/24 python train.py",
    "Permissions 0644 for '/root/.ssh/id_ed25519' are too open.",
    "/dev/disk/by-id/nvme-SAMSUNG_MZ1L2960HCJR-00A07_S665NN0T",
    "task-0123456789abcdefghijklmn disk-0123456789abcdefghijklmn",
    "export UCX_NET_DEVICES=mlx5_0:1; module load nccl/2.21.5",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 MASTER_ADDR=gpu01 MASTER_PORT=29500",
    "AuthType=auth/munge slurmctld: munge: Munge decode failed: Expired credential",
    "bash: mysql: command not found",
    "curl -s http://gpu01:8000/metrics",
    "echo hello | grep h",
    "xai_something_long_of_a_library r8_register_of_this_architecture npm_lifecycle_event_of_scripts",
    "x-forwarded-for: 10.0.0.1",
    '{"gpu_uuid": "GPU-0123", "author": "ada", "token": null}',
    "10.0.0.1:29500:jobs",
    "echo 'vm.overcommit_memory=1' | sudo tee -a /etc/sysctl.conf",
    "ssh -o PasswordAuthentication=no n2 hostname",
    "tiktoken: 0.9.0\nmax_tokens=4096 tokens_per_second: 1234.5",
)


def test_a_secret_is_cut_and_what_stands_around_it_is_kept() -> None:
    assert {text: redact(text) for text in CUT} == CUT


def test_every_kind_of_secret_is_cut() -> None:
    assert {kind: (text, redact(text)) for kind, (text, _) in KINDS.items()} == KINDS


@pytest.mark.parametrize("before", ["error: ", "x=", "ValueError: 'a\\n", 'the node said "', "- "])
def test_no_kind_of_secret_is_hidden_by_what_is_before_it(before: str) -> None:
    left = {kind for kind, (text, cut) in KINDS.items() if secret_of(text, cut) in redact(before + text)}
    assert left == set()


def secret_of(text: str, cut: str) -> str:
    """Return the secret of a kind: what is in the place of the mark."""
    before, _, after = cut.partition(REDACTED)
    return text[len(before) : len(text) - len(after)]


def test_what_a_parser_needs_and_no_thief_wants_is_kept() -> None:
    assert [redact(text) for text in KEPT] == list(KEPT)


def test_redacting_twice_is_redacting_once() -> None:
    once = [*CUT.values(), *(left for _, left in KINDS.values())]
    assert [redact(left) for left in once] == once


def test_fields_named_like_secrets_are_cut_at_any_depth_and_numbers_only_beyond_doubt() -> None:
    value = redact_value({
        "variables": {"HF_TOKEN": "abc", "NCCL_DEBUG": "INFO", "EMPTY_TOKEN": ""},
        "argv": ["env", "API_KEY=abc"],
        "tokens": ["a", "b"],
        "password": 12345,
        "key": 7,
        "ok": True,
        "none": None,
        "size": 1.5,
        "broken": float("nan"),
    })  # fmt: skip
    assert value == {
        "variables": {"HF_TOKEN": "<redacted>", "NCCL_DEBUG": "INFO", "EMPTY_TOKEN": ""},
        "argv": ["env", "API_KEY=<redacted>"],
        "tokens": ["<redacted>", "<redacted>"],
        "password": "<redacted>",
        "key": 7,
        "ok": True,
        "none": None,
        "size": 1.5,
        "broken": None,
    }


def test_names_are_judged_by_their_words() -> None:
    names = ("accessKey", "SECRET", "apikey", "auth_token", "KEY", "turkey", "KEYBOARD", "hostkey_algo", "PUBLIC_KEY")
    assert [name for name in names if secret_name(name)] == ["accessKey", "SECRET", "apikey", "auth_token", "KEY"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["\n", " ", "\n ", "-", '"', "a:", "a=", "a://", "export ", "x-", '"a" '])
def test_long_output_without_a_secret_comes_back_as_it_was_and_soon(piece: str) -> None:
    text = piece * 200_000  # where some pattern goes over the same text again and again, this would take minutes
    assert redact(text) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", [*"a0A_.:=@/$", "a b ", "mysql ", "curl -u a", "echo ", "machine ", "a:1:", "eyJ", "sk-"]
)
def test_hostile_text_is_redacted_in_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        redact(text)
        return time.process_time() - began

    assert seconds(400_000) < 0.5 + 3 * seconds(200_000)


def test_a_record_is_redacted_in_its_text_and_not_in_its_names() -> None:
    name = "hf_" + "a1" * 20
    evidence = ("curl -u me:abc https://x",)
    finding = Finding("NC101", "x", Severity.ERROR, (name,), "HF_TOKEN=abc", evidence, "mysql -pabc", where=name)
    assert redact_record((finding, 1)) == (
        replace(
            finding,
            message="HF_TOKEN=<redacted>",
            evidence=("curl -u me:<redacted> https://x",),
            fix="mysql -p<redacted>",
        ),
        1,
    )


@pytest.mark.slow
@pytest.mark.parametrize("cluster", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_a_report_without_secrets_stays_as_it_was(cluster: str) -> None:
    report = judge_again(
        load(FIXTURES / cluster), Settings(launcher="mpirun", program=("python", "train.py")), Silent()
    )
    assert REDACTED not in as_json(report)


TOKEN = "ghp_" + "a1" * 18


def test_what_a_node_prints_leaves_the_program_without_its_secrets(tmp_path: Path) -> None:
    """Each way out: the report in every format, the progress, messages, a recording, and what `read` prints."""
    first, *others = load(FIXTURES / "demo")
    login = replace(first.login, reached=False, cause=Cause.NO_SHELL, detail=f"ended: curl -H 'X-Auth-Token: {TOKEN}'")
    greeting = first.greeting and replace(first.greeting, noise=f"export GH_TOKEN={TOKEN}\n")
    sick = replace(first, login=login, greeting=greeting)
    progress = io.StringIO()
    report = judge_again((sick, *others), Settings(), PlainLines(progress))
    PlainLines(progress).login_failed("gpu01", login)
    pages = [io.StringIO() for _ in FORMATS]
    for form, page in zip(FORMATS, pages, strict=True):
        show(report, form, page, {"COLUMNS": "200"}, color=False)
    save(tmp_path / "run", (replace(sick, recorded=False), *others))
    recorded = "".join(path.read_text() for path in (tmp_path / "run").iterdir())
    log = json.dumps(
        read_text("log", f"ssh: Could not resolve hostname node07: token={TOKEN}: Name or service not known")
    )
    shown = {form: page.getvalue() for form, page in zip(FORMATS, pages, strict=True)}
    forms = ("openmetrics", "nagios", "slurm", "kubernetes", "concise", "table")  # codes, names and numbers alone
    without_words = [shown.pop(form) for form in forms]
    for text in (progress.getvalue(), *shown.values(), recorded, log):
        assert "ended: curl" in text or "Could not resolve" in text
        assert TOKEN not in text
    assert TOKEN not in "".join(without_words)


def test_messages_on_standard_error_have_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{TOKEN}.txt"]) == 2
    say(f"HF_TOKEN={TOKEN}")
    out, err = capsys.readouterr()
    assert TOKEN not in out + err
    assert "HF_TOKEN=<redacted>" in err


def marked() -> dict[str, tuple[str, str]]:
    """Return the text and the secret of each kind, so that no two have the same secret."""
    own = {}
    for number, (kind, pair) in enumerate(KINDS.items()):
        new = {"abc": f"Zq{number:03}secret", A40: f"a1B2{number:04}" * 5, B64: f"c2Vjc{number:03}" * 8}
        text, cut = (_replaced(one, new) for one in pair)
        own[kind] = (text, secret_of(text, cut))
    return own


def _replaced(text: str, new: Mapping[str, str]) -> str:
    for old, value in new.items():
        text = text.replace(old, value)
    return text


def planted(value: object, secrets: Iterator[str], numbers: Iterator[int]) -> object:
    """Return an answer of a node with a secret in each of its strings: in its place, behind it, or in a line below."""
    if isinstance(value, str):
        secret = next(secrets)
        return (secret, f"{value} {secret}", f"{value}\n{secret}")[next(numbers) % 3]
    if isinstance(value, list):
        return [planted(item, secrets, numbers) for item in value]
    if isinstance(value, dict):
        return {name: inner if name == "status" else planted(inner, secrets, numbers) for name, inner in value.items()}
    return value


def ways_out(folder: Path, reports: Iterable[Report], evidence: tuple[Evidence, ...]) -> Iterator[tuple[str, str]]:
    """Yield all that leaves the program, by name."""
    for number, report in enumerate(reports):
        for form in FORMATS:
            page = io.StringIO()
            show(report, form, page, {"COLUMNS": "200"}, color=False)
            yield form, page.getvalue()
        known = KnownOfNode(evidence[0].node, report, evidence[0], 1.0)
        yield from ticket_files(known).items()
        history = folder / f"{number}.db"
        remembered(report, Settings(history=str(history)), "replay")
        yield "history", history.read_bytes().decode(errors="replace")
        yield "notify", json.dumps(message_of(changes_in(entry_of(report), ()), entry_of(report), report.state))
    save(folder / "saved", [replace(one, recorded=False) for one in evidence])
    yield "recording", "".join(path.read_text() for path in (folder / "saved").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("shift", range(3))
def test_no_kind_of_secret_in_any_string_of_a_node_leaves_the_program(tmp_path: Path, shift: int) -> None:
    kinds = marked()
    folder = tmp_path / "run"
    shutil.copytree(FIXTURES / "demo", folder)
    for number, path in enumerate(sorted(folder.iterdir())[:3]):
        head = json.loads(path.read_text())
        texts = itertools.cycle([text for text, _ in kinds.values()])
        own = itertools.islice(texts, 41 * number + 17 * shift, None)
        head["evidence"]["replies"] = planted(head["evidence"]["replies"], own, itertools.count(shift))
        path.write_text(json.dumps(head))
    evidence = load(folder)
    settings = Settings(launcher="mpirun", program=("python", "train.py"))
    found = {
        (kind, way)
        for way, text in ways_out(tmp_path, [judge_again(evidence, settings, Silent())], evidence)
        for kind, (_, secret) in kinds.items()
        if secret in text
    }
    assert sorted(found) == []


def test_no_kind_of_secret_is_left_in_a_log_a_pod_spec_or_a_launch_line() -> None:
    kinds = marked()
    log = "\n".join(f"[rank{number}]: {text}" for number, (text, _) in enumerate(kinds.values()))
    left = {"log": redact(log), "read": json.dumps(read_text("log", f"{log}\nNCCL WARN Connection refused\n"))}
    for kind, (text, secret) in kinds.items():
        spec: dict[str, JsonValue] = {"env": [{"name": "HF_TOKEN", "value": secret}, {"name": "NOTE", "value": text}],
                "args": ["train.py", "--api-key", secret, "--note", text]}  # fmt: skip
        printed = (redact(json.dumps(spec)), redact(json.dumps(spec, indent=2)), redact(str(spec)))
        left |= {f"pod {kind}": "".join((*printed, json.dumps(redact_value(spec))))}
        token = shlex.quote(secret.partition("\n")[0])
        left |= {f"line {kind}": redact(f"docker run --rm --env=HF_TOKEN={token} -e 'NOTE={text}' img")}
    found = {(kind, way) for way, text in left.items() for kind, (_, secret) in kinds.items() if secret in text}
    assert sorted(found) == []
