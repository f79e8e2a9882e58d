"""Redaction: secrets are removed from evidence before it is written to a recording.

A value is removed if its name looks like a token, key, password, secret or credential, in the syntax of environments,
command lines, JSON and HTTP headers. Values that are recognizable (private keys, URLs with a password, tokens of
well-known services) are removed everywhere.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncheck.model.evidence import JsonValue


REDACTED = "<redacted>"


# HF_TOKEN, db_password, aws.secretKey, MYSQL_PWD, PGPASSWORD
_SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|AUTHORIZATION|SSHPASS|MYSQL_PWD|COOKIE"
    r"|(?<![A-Z])(?:KEY|PASS)(?![A-Z])",
    re.IGNORECASE,
)


# PUBLIC_KEY, ssh-key-fingerprint: these are public; hostKey -> host_Key
_PUBLIC_NAME = re.compile(r"PUBLIC|FINGERPRINT", re.IGNORECASE)


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


_NAME = r"(?P<name>(?<![\w.-])[A-Za-z_-][\w.-]{0,127})"


# export WANDB_API_KEY=two words          (a line of `env`, or a record of /proc/PID/environ)
_WHOLE_LINE = re.compile(
    rf"(?:^|(?<=\0))(?P<before>[ \t]*(?:export[ \t]+|declare -x[ \t]+)?){_NAME}(?P<is>=)(?P<value>[^\n\0]+)",
    re.MULTILINE,
)


# mpirun -x HF_TOKEN=abc --token=abc 'password="two words"'
_ASSIGNED = re.compile(rf"{_NAME}(?P<is>=)(?P<value>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s,;&'\"\0]+)")


# "secret_key": "abc\"def", 'token': 'abc'
_QUOTED = re.compile(
    r"(?P<quote>[\"'])(?P<name>[A-Za-z_][\w.-]{0,127})(?P=quote)(?P<is>[ \t]*:[ \t]*)"
    r"(?P<value>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?!null|true|false)[\w.+/-]+)"
)


# password: hunter2          (YAML; a name that only ends in "key" is too common in the output of tools)
_YAML = re.compile(
    r"^(?P<before>[ \t-]*)(?P<name>[A-Za-z_][\w.-]{0,127})(?P<is>:[ \t]+)(?P<value>\S[^\n\0]*)", re.MULTILINE
)


# train.py --api-key abc
_OPTION = re.compile(r"(?P<name>(?<!\S)--?[A-Za-z][\w-]{0,127})(?P<is>[ \t]+)(?P<value>[^\s-][^\s\0]*)")


_VALUES = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        # -----BEGIN OPENSSH PRIVATE KEY----- ... -----END OPENSSH PRIVATE KEY-----, or truncated
        r"()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----|\Z)",
        # Authorization: Basic dXNlcjpwYXNz
        r"((?i:\b(?:proxy-)?authorization)[\"']?\s*[:=]\s*[\"']?)[^\"'\r\n\0]+",
        # curl -H 'X: bearer eyJhbGciOi...'
        r"((?i:\bbearer)\s+)[\w.~+/=-]{8,}",
        # https://user:pass@host/path, socks5://:pass@host
        r"((?<![\w+.-])[A-Za-z][\w+.-]{0,20}://[^\s/:@\"'\0]{0,256}:)[^\s/@\"'\0]{1,1024}(?=@)",
        # https://ghp_abc@host/path
        r"((?<![\w+.-])https?://)[^\s/:@\"'\0]{1,1024}(?=@)",
        # ghp_..., github_pat_..., hf_..., glpat-..., xoxb-..., sk-..., AKIA...
        r"()\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,}|glpat-[\w-]{16,}|xox[abps]-[\w-]{16,})",
        r"()\b(?:sk-[\w-]{20,}|AKIA[A-Z0-9]{16}\b)",
    )
)


def secret_name(name: str) -> bool:
    """Return whether a variable, option or field with this name holds a secret."""
    words = _CAMEL.sub("_", name)
    return bool(_SECRET_NAME.search(words)) and not _PUBLIC_NAME.search(words)


def redact(text: str) -> str:
    """Return the text with every secret replaced; everything else, also line breaks, is unchanged."""
    for pattern in _VALUES:
        text = pattern.sub(rf"\1{REDACTED}", text)
    for pattern in (_WHOLE_LINE, _ASSIGNED, _OPTION):
        text = pattern.sub(_cut, text)
    return _YAML.sub(_cut_yaml, _QUOTED.sub(_cut_quoted, text))


def redact_value(value: JsonValue) -> JsonValue:
    """Return the value with secrets replaced in its strings and in fields with the name of a secret."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    if isinstance(value, dict):
        return {redact(name): _field(name, inner) for name, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number
    return value


def _field(name: str, value: JsonValue) -> JsonValue:
    """Replace a secret field; a number only if the name is certain, because parsers need their numbers."""
    if not value or isinstance(value, bool) or not secret_name(name):
        return redact_value(value)
    if isinstance(value, list):
        return [_field(name, item) for item in value]
    certain = isinstance(value, str) or (isinstance(value, (int, float)) and not _weak(name))
    return REDACTED if certain else redact_value(value)


def _cut(found: re.Match[str]) -> str:
    if not secret_name(found["name"]) or found["value"].strip("\"'") in ("", REDACTED):
        return found[0]
    start = found.start("value") - found.start()
    return found[0][:start] + REDACTED


def _cut_quoted(found: re.Match[str]) -> str:
    """Replace a field of JSON so that the result is still JSON."""
    cut = _cut(found)
    return cut[: -len(REDACTED)] + f"{found['quote']}{REDACTED}{found['quote']}" if cut.endswith(REDACTED) else cut


def _cut_yaml(found: re.Match[str]) -> str:
    return found[0] if _weak(found["name"]) else _cut(found)


def _weak(name: str) -> bool:
    """Return whether the name looks secret only because it contains the word "key" or "pass"."""
    return not re.search(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY", name, re.IGNORECASE)
