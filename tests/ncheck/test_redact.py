"""What is cut out of a recording, and what must stay as it was for the replay to be true."""

from __future__ import annotations

import pytest
from ncheck.redact import redact, redact_value, secret_name

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
    "MYSQL_PWD=x": "MYSQL_PWD=<redacted>",
    "SSHPASS=x": "SSHPASS=<redacted>",
    "DB_PASS=x": "DB_PASS=<redacted>",
    "GOOGLE_APPLICATION_CREDENTIALS=/k.json": "GOOGLE_APPLICATION_CREDENTIALS=<redacted>",
}

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
)


@pytest.mark.parametrize(("text", "left"), CUT.items(), ids=range(len(CUT)))
def test_a_secret_is_cut_and_what_stands_around_it_is_kept(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize("text", KEPT)
def test_what_a_parser_needs_and_no_thief_wants_is_kept(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("text", CUT)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    assert redact(redact(text)) == redact(text)


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
